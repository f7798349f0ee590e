// The plain recurrent network (Elman, "Finding Structure in Time", 1990), attention's baseline:
//
//   h_t = tanh(x_t . wx + bx + h_(t-1) . wh + bh)
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

struct rnn_parameters {
  view<const float, 2> wx;    // (input_dim, hidden)
  view<const float, 2> wh;    // (hidden, hidden)
  const float* bx = nullptr;  // hidden floats each, or null
  const float* bh = nullptr;
};

byte_count rnn_workspace_bytes(extent input_dim, extent hidden, int workers);

// x: (batch, length, input_dim), h0: (batch, hidden) or empty for zeros, outputs: (batch, length,
// hidden) = every h_t, final_state: (batch, hidden) = the last h_t (h0 where the length is 0).
// The inputs are projected by one matrix product; then the steps follow one another, and only
// sequences of a batch run side by side. A single step is a sequence of length 1, with the same
// bits. Errors: shape_mismatch, invalid_argument (strides), out_of_memory (a workspace too small).
status rnn_forward(view<const float, 3> x, const rnn_parameters& parameters,
                   view<const float, 2> h0, view<float, 3> outputs, view<float, 2> final_state,
                   workspace memory, thread_pool& pool);

}  // namespace qkv
