// Rows brought to one scale.
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

// Layer normalization (Ba, Kiros & Hinton, 2016):
//   out = (x - mean) / sqrt(variance + epsilon) * gamma + beta
// with the mean and the variance (divided by the count) of each row. x, out: (rows, columns), last
// axis contiguous; out may be x. gamma, beta: columns floats, or null for ones and zeros.
// epsilon >= 0; 0 makes a row of equal numbers NaN, as NaN or Infinity in it does.
// Errors: shape_mismatch, invalid_argument (strides, epsilon).
status layer_norm_forward(view<const float, 2> x, const float* gamma, const float* beta,
                          float epsilon, view<float, 2> out, thread_pool& pool);

// Root mean square normalization (Zhang & Sennrich, 2019):
//   out = x / sqrt(mean of x^2 + epsilon) * gamma
// All else as above, but beside Infinity numbers become 0.
status rms_norm_forward(view<const float, 2> x, const float* gamma, float epsilon,
                        view<float, 2> out, thread_pool& pool);

// Where the gradients go.
struct norm_gradients {
  view<float, 2> d_x;        // (rows, columns)
  float* d_gamma = nullptr;  // columns floats each, sums over the rows; null where not wanted
  float* d_beta = nullptr;
};

byte_count norm_backward_workspace_bytes(extent rows, extent columns);

// The gradients of a loss whose gradient by the output is d_out, (rows, columns). With scaled =
// (x - mean) / sqrt(variance + epsilon) and g = d_out * gamma:
//   d_x = (g - mean of g - scaled * mean of (g * scaled)) / sqrt(variance + epsilon)
//   d_gamma = sum of d_out * scaled, d_beta = sum of d_out
// d_x may be d_out or x. All else as above; out_of_memory: a workspace too small.
status layer_norm_backward(view<const float, 2> d_out, view<const float, 2> x, const float* gamma,
                           float epsilon, const norm_gradients& gradients, workspace memory,
                           thread_pool& pool);

// As above without the means of x and of g: d_x = (g - scaled * mean of (g * scaled)) / root. There
// is no beta: d_beta is not written.
status rms_norm_backward(view<const float, 2> d_out, view<const float, 2> x, const float* gamma,
                         float epsilon, const norm_gradients& gradients, workspace memory,
                         thread_pool& pool);

}  // namespace qkv
