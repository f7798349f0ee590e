// Softmax of one contiguous row.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/online_softmax.hpp"
#include "kernels/row.hpp"

namespace qkv::kernels {

// Returns the log of the sum of exponentials.
inline float softmax_row(const float* x, extent columns, float* out) {
  simd::batch largest = simd::broadcast(minus_infinity);
  for (extent j = 0; j < columns; j += simd::lanes) {
    largest = simd::max(largest, load_row(x + j, columns - j, minus_infinity));
  }
  const float row_max = simd::max_lanes(largest);
  const float shift = row_max == minus_infinity ? 0.0f : row_max;
  float sum = 0.0f;
  for (extent block = 0; block < columns; block += row_sum_block * simd::lanes) {
    const extent end = std::min(columns, block + row_sum_block * simd::lanes);
    simd::batch block_sum = simd::zero();
    for (extent j = block; j < end; j += simd::lanes) {
      const simd::batch value =
          simd::exp_nonpositive(load_row(x + j, end - j, minus_infinity) - simd::broadcast(shift));
      store_row(out + j, end - j, value);
      block_sum = block_sum + value;
    }
    sum += simd::sum_lanes(block_sum);
  }
  if (sum == 0.0f) return minus_infinity;
  for (extent j = 0; j < columns; j += simd::lanes) {
    store_row(out + j, columns - j, load_row(out + j, columns - j, 0.0f) / simd::broadcast(sum));
  }
  return row_max + std::log(sum);
}

}  // namespace qkv::kernels
