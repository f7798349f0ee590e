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

// The slopes of the functions above come near 1 far to the right, where Infinity times what has
// become 0 would be NaN again; so x is kept between -most and most.
inline simd::batch within(simd::batch x, float most) {
  return -simd::max(-not_below(x, -most), simd::broadcast(-most));
}

// d_x[i] = d_out[i] * slope(x[i]); d_x may be x or d_out.
template <typename Slope>
void backward_row(const float* d_out, const float* x, extent count, float* d_x,
                  const Slope& slope) {
  for (extent i = 0; i < count; i += simd::lanes) {
    const simd::batch value = slope(load_row(x + i, count - i));
    store_row(d_x + i, count - i, load_row(d_out + i, count - i) * value);
  }
}

// x's share of the normal distribution, and x times its density.
inline void gelu_backward_row(const float* d_out, const float* x, extent count, float* d_x) {
  backward_row(d_out, x, count, d_x, [](simd::batch x) {
    constexpr float inverse_root = 0.3989422804f;  // 1 / sqrt(2 pi)
    const simd::batch value = within(x, 16.0f);
    const simd::batch density =
        simd::bell_curve(simd::bell_distance(value)) * simd::broadcast(inverse_root);
    return simd::madd(value, density, simd::normal_distribution(value));
  });
}

// sigmoid(u) has the slope sigmoid(u) sigmoid(-u), which keeps its digits where sigmoid is near 1.
inline void gelu_tanh_backward_row(const float* d_out, const float* x, extent count, float* d_x) {
  constexpr float linear = 1.5957691216f;  // 2 sqrt(2 / pi)
  backward_row(d_out, x, count, d_x, [](simd::batch x) {
    const simd::batch value = within(x, 16.0f);
    const simd::batch cubic = simd::broadcast(linear * 0.044715f) * (value * value);
    const simd::batch inner = value * (simd::broadcast(linear) + cubic);
    const simd::batch inner_slope =
        simd::madd(simd::broadcast(3.0f), cubic, simd::broadcast(linear));
    return simd::sigmoid(inner) *
           simd::madd(value * inner_slope, simd::sigmoid(-inner), simd::broadcast(1.0f));
  });
}

inline void silu_backward_row(const float* d_out, const float* x, extent count, float* d_x) {
  backward_row(d_out, x, count, d_x, [](simd::batch x) {
    const simd::batch value = within(x, 128.0f);
    return simd::sigmoid(value) * simd::madd(value, simd::sigmoid(-value), simd::broadcast(1.0f));
  });
}

}  // namespace qkv::kernels
