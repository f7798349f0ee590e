// The gradients of the cells of recurrent.hpp, by backpropagation through time (Werbos, 1990).
#pragma once

#include "qkv/recurrent.hpp"

namespace qkv {

// What the loss's gradient by each output of recurrent_forward() is. A view of nothing is zeros.
// What d_outputs holds beyond a sequence's length is not read.
struct recurrent_output_gradients {
  view<const float, 3> d_outputs = {};  // (batch, length, directions * hidden)
  view<const float, 3> d_h = {};        // (directions, batch, hidden)
  view<const float, 3> d_c = {};        // lstm: the same
};

// Of one direction, in the gate order of the parameters; summed over the batch and all steps. A
// view of nothing, or null, where one is not wanted.
struct recurrent_parameter_gradients {
  view<float, 2> d_wx = {};     // (input_dim, gates * hidden)
  view<float, 2> d_wh = {};     // (hidden, gates * hidden)
  float* d_bx = nullptr;        // gates * hidden floats each: also where there is no bias
  float* d_bh = nullptr;        //
  float* d_peephole = nullptr;  // 3 * hidden floats, i f o: where there is a peephole
};

// What the loss's gradient by each input is. A view of nothing where one is not wanted.
struct recurrent_gradients {
  view<float, 3> d_x = {};   // (batch, length, input_dim); zeros beyond a sequence's length
  view<float, 3> d_h0 = {};  // (directions, batch, hidden): also where h0 is zeros
  view<float, 3> d_c0 = {};  // lstm: the same
  std::array<recurrent_parameter_gradients, 2> d_parameters = {};  // as the parameters
};

byte_count recurrent_backward_workspace_bytes(const recurrent_sizes& sizes,
                                              const recurrent_options& options, int workers);

// `trace` is what recurrent_forward() wrote with the same inputs, parameters and options; it is
// used up: a second call needs a new one. Of the inputs only x and lengths are read. No gradient
// may lie where an argument lies. With d_a for what a loss says of a gate's sum a,
//
//   d_x = d_a . wx^T           d_wx = sum of x_t^T . d_a       d_bx = sum of d_a
//   d_h_(t-1) += d_a . wh^T    d_wh = sum of h_(t-1)^T . d_a   d_bh = sum of d_a
//
// where a GRU's columns n have r d_a in place of d_a in the second line with reset_after, and r h
// in place of h in d_wh without. d_x, d_h0 and d_c0 have the same bits for any batch, and all
// gradients for any number of threads and whatever others are wanted. Errors: as
// recurrent_forward(); a d_c or d_c0 that is not an lstm's and a d_peephole without a peephole are
// an invalid_argument. On an error nothing is written.
status recurrent_backward(const recurrent_inputs& inputs,
                          const std::array<recurrent_parameters, 2>& parameters,
                          const recurrent_options& options, float* trace,
                          const recurrent_output_gradients& d_outputs,
                          const recurrent_gradients& gradients, workspace memory,
                          thread_pool& pool);

}  // namespace qkv
