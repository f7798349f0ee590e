// Activations of whole rows. `out` may be `row`.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// Far to the left the functions below are 0, but -Infinity times that 0 would be NaN; where they
// end is far enough. NaN stays NaN.
inline simd::batch not_below(simd::batch x, float least) {
  return simd::max(x, simd::broadcast(least));
}

// x times the share of the normal distribution that lies below x.
inline void gelu_row(const float* row, extent count, float* out) {
  map_row(row, count, out, [](simd::batch x) {
    const simd::batch value = not_below(x, -16.0f);
    return value * simd::normal_distribution(value);
  });
}

// (1 + tanh(u)) / 2 is the sigmoid of 2 u, which keeps its digits where tanh comes near -1.
inline void gelu_tanh_row(const float* row, extent count, float* out) {
  constexpr float linear = 1.5957691216f;  // 2 sqrt(2 / pi)
  map_row(row, count, out, [](simd::batch x) {
    const simd::batch value = not_below(x, -16.0f);
    const simd::batch cubic = simd::broadcast(linear * 0.044715f) * (value * value);
    return value * simd::sigmoid(value * (simd::broadcast(linear) + cubic));
  });
}

inline void silu_row(const float* row, extent count, float* out) {
  map_row(row, count, out, [](simd::batch x) {
    const simd::batch value = not_below(x, -128.0f);
    return value * simd::sigmoid(value);
  });
}

}  // namespace qkv::kernels
