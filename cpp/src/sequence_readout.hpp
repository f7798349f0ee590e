// Logits of the rows that a sequence model reads, and what they say of targets.
#pragma once

#include "sequence_run.hpp"

namespace qkv {

struct readout_memory {
  std::int32_t* answered;  // rows of x that are read
  std::int32_t* targets;   // theirs
  float* rows;             // (answers, embed_dim)
  float* logits;           // (answers, classes)
  float* d_logits;         // likewise
  float* d_rows;           // backward, as rows
};

readout_memory take_readout(const sequence_plan& plan, workspace& memory);
byte_count readout_scratch_bytes(const sequence_plan& plan, int workers);

// logits: (count, classes) of rows, (count, embed_dim).
void read_out(sequence_run& run, const float* rows, extent count, float* logits);

// Fills `answered` and `targets` for `every`, and returns how many there are.
extent choose_answers(const sequence_run& run, const std::int32_t* targets,
                      const readout_memory& memory);

// From the first `count` of memory.rows and targets. With gradients memory.d_rows and the readout's
// gradients are filled.
void answer(sequence_run& run, const readout_memory& memory, const std::int32_t* targets,
            extent count, sequence_result& result);

// The index of a row's first largest number.
extent first_largest(const float* row, extent count);

}  // namespace qkv
