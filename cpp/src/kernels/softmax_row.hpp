// Softmax of one contiguous row.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/online_softmax.hpp"

namespace qkv::kernels {

// Each lane sums this many numbers before they join the total: a long row's sum is a sum of sums.
inline constexpr extent softmax_sum_block = 128;

// A batch of the row's elements; lanes past the end hold -Infinity, which adds nothing.
inline simd::batch load_row(const float* row, extent count) {
  if (count >= simd::lanes) return simd::load(row);
  float lane[simd::lanes];
  std::fill_n(std::copy_n(row, count, lane), simd::lanes - count, minus_infinity);
  return simd::load(lane);
}

inline void store_row(float* row, extent count, simd::batch value) {
  if (count >= simd::lanes) return simd::store(row, value);
  float lane[simd::lanes];
  simd::store(lane, value);
  std::copy_n(lane, count, row);
}

// Returns the log of the sum of exponentials.
inline float softmax_row(const float* x, extent columns, float* out) {
  simd::batch largest = simd::broadcast(minus_infinity);
  for (extent j = 0; j < columns; j += simd::lanes) {
    largest = simd::max(largest, load_row(x + j, columns - j));
  }
  const float row_max = simd::max_lanes(largest);
  const float shift = row_max == minus_infinity ? 0.0f : row_max;
  float sum = 0.0f;
  for (extent block = 0; block < columns; block += softmax_sum_block * simd::lanes) {
    const extent end = std::min(columns, block + softmax_sum_block * simd::lanes);
    simd::batch block_sum = simd::zero();
    for (extent j = block; j < end; j += simd::lanes) {
      const simd::batch value =
          simd::exp_nonpositive(load_row(x + j, end - j) - simd::broadcast(shift));
      store_row(out + j, end - j, value);
      block_sum = block_sum + value;
    }
    sum += simd::sum_lanes(block_sum);
  }
  if (sum == 0.0f) return minus_infinity;
  for (extent j = 0; j < columns; j += simd::lanes) {
    store_row(out + j, columns - j, load_row(out + j, columns - j) / simd::broadcast(sum));
  }
  return row_max + std::log(sum);
}

}  // namespace qkv::kernels
