// A linear layer: out = x . weight + bias.
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

byte_count linear_workspace_bytes(extent in_dim, extent out_dim, int workers);

// x: (rows, in_dim), weight: (in_dim, out_dim), bias: null or out_dim floats, out: (rows, out_dim).
// The last axis of each must be contiguous. in_dim may be 0: out is then the bias, or zeros.
// Errors: shape_mismatch, invalid_argument (strides), out_of_memory (a workspace too small).
status linear_forward(view<const float, 2> x, view<const float, 2> weight, const float* bias,
                      view<float, 2> out, workspace memory, thread_pool& pool);

// Where the gradients go; a view of nothing, or null, where one is not wanted.
struct linear_gradients {
  view<float, 2> d_x = {};       // (rows, in_dim) = d_out . weight^T
  view<float, 2> d_weight = {};  // (in_dim, out_dim) = x^T . d_out
  float* d_bias = nullptr;       // out_dim floats = the sum of d_out's rows
};

byte_count linear_backward_workspace_bytes(extent rows, extent in_dim, extent out_dim, int workers);

// The gradients of a loss whose gradient by the output is d_out, (rows, out_dim). No gradient may
// lie where an argument lies. All else as above.
status linear_backward(view<const float, 2> d_out, view<const float, 2> x,
                       view<const float, 2> weight, const linear_gradients& gradients,
                       workspace memory, thread_pool& pool);

}  // namespace qkv
