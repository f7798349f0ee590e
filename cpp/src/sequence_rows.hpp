// The first rows of a sequence model: tokens and positions.
#pragma once

#include "sequence_run.hpp"

namespace qkv {

struct row_memory {
  std::int32_t* tokens;     // of the context, then of x
  float* context;           // (batch * context_length, embed_dim), and right behind it
  layer_rows x;             // (batch * length, embed_dim)
  float* sinusoids;         // (longest length, embed_dim), or null
  std::int32_t* positions;  // learned, backward: as tokens
  float* d_context;         // as context, and right behind it
  float* d_x;               // (batch * length, embed_dim)
};

row_memory take_rows(const sequence_plan& plan, workspace& memory);
byte_count rows_scratch_bytes(const sequence_plan& plan);

// Tokens become x of layer 0 and the context's rows.
void embed_rows(sequence_run& run, const row_memory& memory);

// From d_context and d_x the gradients of the embedding and of learned positions.
void embed_rows_backward(sequence_run& run, const row_memory& memory);

// norms: (batch * length), the Euclidean norm of each row of d_x.
void row_norms(sequence_run& run, const float* d_x, float* norms);

}  // namespace qkv
