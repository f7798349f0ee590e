// Rows brought to one scale.
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"

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

}  // namespace qkv
