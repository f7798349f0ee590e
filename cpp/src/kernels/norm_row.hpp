// Normalization of one contiguous row.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/row.hpp"

namespace qkv::kernels {

// The sums of x - center and of its square over a row.
struct deviations {
  double sum = 0;
  double squares = 0;
};

[[gnu::noinline]] inline deviations deviations_from(float center, const float* x, extent columns) {
  deviations total;
  for (extent block = 0; block < columns; block += row_sum_block * simd::lanes) {
    const extent end = std::min(columns, block + row_sum_block * simd::lanes);
    simd::batch sum = simd::zero(), squares = simd::zero();
    for (extent j = block; j < end; j += simd::lanes) {
      const simd::batch difference = load_row(x + j, end - j, center) - simd::broadcast(center);
      sum = sum + difference;
      squares = simd::madd(difference, difference, squares);
    }
    total.sum += simd::sum_lanes(sum);
    total.squares += simd::sum_lanes(squares);
  }
  return total;
}

// out = ((x - center) - rest) * factor * gamma + beta
struct normalization {
  float center;
  float rest;
  float factor;
  const float* gamma;
  const float* beta;

  void apply(const float* x, extent columns, float* out) const {
    for (extent j = 0; j < columns; j += simd::lanes) {
      const extent count = columns - j;
      simd::batch value = load_row(x + j, count) - simd::broadcast(center);
      value = (value - simd::broadcast(rest)) * simd::broadcast(factor);
      if (gamma != nullptr) value = value * load_row(gamma + j, count);
      if (beta != nullptr) value = value + load_row(beta + j, count);
      store_row(out + j, count, value);
    }
  }
};

// The mean of a float sum may be off by some of the mean's last digits, which a row with a large
// mean and a small spread has none to spare of. What the mean itself leaves over corrects both it
// and the variance (Chan, Golub & LeVeque, "Algorithms for Computing the Sample Variance", 1983).
inline normalization layer_normalization(const float* x, extent columns, float epsilon) {
  const double count = static_cast<double>(columns);
  const float center = static_cast<float>(deviations_from(0.0f, x, columns).sum / count);
  const deviations from_center = deviations_from(center, x, columns);
  const double rest = from_center.sum / count;
  const double variance = std::max(0.0, from_center.squares / count - rest * rest);
  const double factor = 1.0 / std::sqrt(variance + static_cast<double>(epsilon));
  return {center, static_cast<float>(rest), static_cast<float>(factor), nullptr, nullptr};
}

inline normalization rms_normalization(const float* x, extent columns, float epsilon) {
  const double mean = deviations_from(0.0f, x, columns).squares / static_cast<double>(columns);
  const double factor = 1.0 / std::sqrt(mean + static_cast<double>(epsilon));
  return {0.0f, 0.0f, static_cast<float>(factor), nullptr, nullptr};
}

}  // namespace qkv::kernels
