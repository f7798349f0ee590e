// The way back through the steps of some sequences in one direction: what a thread does by itself.
#pragma once

#include "qkv/recurrent_backward.hpp"
#include "recurrent_cells_backward.hpp"

namespace qkv {

// A worker's scratch, each piece (sequence_group, state_stride).
struct recurrent_backward_scratch {
  float* d_h;
  float* d_c;
  float* d_reset;
};

struct recurrent_backward_task {
  const recurrent_output_gradients& d_outputs;
  const recurrent_gradients& gradients;
  const recurrent_options& options;
  const recurrent_weights_back& weights;
  extent direction;  // an index of states and the halves of outputs
  extent hidden;     //
  step_order order;
  trace_rows trace;   // from the group's first row on
  float* d_peephole;  // lstm: (3, state_stride): the group's share
};

// Turns the trace's gates into their sums' gradients, and gives those of the first states.
void run_sequences_back(const recurrent_backward_task& task,
                        const recurrent_backward_scratch& scratch);

}  // namespace qkv
