// Softmax of one contiguous row.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/online_softmax.hpp"
#include "kernels/row.hpp"

namespace qkv::kernels {

// The largest number of a row, and the sum of exp(x - max); 0 where all are -Infinity.
struct softmax_statistics {
  float max;
  float sum;
};

// out = the softmax of x, which out may be.
inline softmax_statistics softmax_row(const float* x, extent columns, float* out) {
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
  if (sum == 0.0f) return {row_max, sum};
  for (extent j = 0; j < columns; j += simd::lanes) {
    store_row(out + j, columns - j, load_row(out + j, columns - j) / simd::broadcast(sum));
  }
  return {row_max, sum};
}

inline float log_sum_exp(const softmax_statistics& row) {
  return row.sum == 0.0f ? minus_infinity : row.max + std::log(row.sum);
}

// The gradient where x is visible, and 0 where it is -Infinity, whatever the gradient is there.
inline simd::batch where_visible(const float* x, extent count, simd::batch gradient) {
  const simd::batch hidden = simd::broadcast(minus_infinity);
  return xsimd::select(load_row(x, count, minus_infinity) == hidden, simd::zero(), gradient);
}

// d_x = out * (d_out - the sum of out * d_out), with out = softmax(x) made anew.
inline void softmax_backward_row(const float* d_out, const float* x, extent columns, float* d_x) {
  softmax_row(x, columns, d_x);
  float product = 0.0f;
  for (extent block = 0; block < columns; block += row_sum_block * simd::lanes) {
    const extent end = std::min(columns, block + row_sum_block * simd::lanes);
    simd::batch sum = simd::zero();
    for (extent j = block; j < end; j += simd::lanes) {
      sum = simd::madd(load_row(d_x + j, end - j),
                       where_visible(x + j, end - j, load_row(d_out + j, end - j)), sum);
    }
    product += simd::sum_lanes(sum);
  }
  for (extent j = 0; j < columns; j += simd::lanes) {
    const extent count = columns - j;
    const simd::batch difference = load_row(d_out + j, count) - simd::broadcast(product);
    const simd::batch gradient = load_row(d_x + j, count) * difference;
    store_row(d_x + j, count, where_visible(x + j, count, gradient));
  }
}

}  // namespace qkv::kernels
