// The steps of some sequences in one direction: what a thread does by itself.
#pragma once

#include "recurrent_cells.hpp"
#include "recurrent_trace.hpp"

namespace qkv {

// Rows of x that are projected together, ahead of their steps: as many as a product needs to be
// fast, and few enough for their gates to stay in the cache.
inline constexpr extent projected_rows = kernels::row_block;

// A worker's scratch, each piece with `lanes` more floats behind it.
struct recurrent_scratch {
  float* x;          // (projected_rows, input_dim)
  float* gates;      // (projected_rows, gates * hidden)
  float* h;          // (sequence_group, state_stride)
  float* c;          // the same: lstm
  float* candidate;  // the same: gru
};

struct recurrent_task {
  const recurrent_inputs& inputs;
  const recurrent_outputs& outputs;
  const recurrent_options& options;
  const recurrent_weights& weights;
  extent direction;  // an index of h, c and the halves of outputs
  step_order order;
  trace_rows trace;  // from the group's first row on, or empty
};

void run_sequences(const recurrent_task& task, const recurrent_scratch& scratch);

}  // namespace qkv
