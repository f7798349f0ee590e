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

}  // namespace qkv
