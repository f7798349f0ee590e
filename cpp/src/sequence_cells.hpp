// A sequence model's layers of recurrent cells.
#pragma once

#include "sequence_run.hpp"

namespace qkv {

struct cell_memory {
  layer_rows trace;  // backward: what each layer's forward pass leaves for it
  float* states;     // (2, batch, embed_dim): where the last states go, which nothing reads
  float* d_part;     // backward: (batch * length, embed_dim)
};

cell_memory take_cells(const sequence_plan& plan, workspace& memory);
byte_count cell_scratch_bytes(const sequence_plan& plan, int workers);

// x, output: (batch, length, embed_dim).
void run_cell(sequence_run& run, const cell_memory& memory, extent layer, const float* x,
              float* output);

// Of run_cell(). d_x: on entry the gradient by the output, on return that by x.
void run_cell_backward(sequence_run& run, const cell_memory& memory, extent layer, const float* x,
                       float* d_x);

}  // namespace qkv
