// Rows of any length in batches, the last of which may be padded.
#pragma once

#include <algorithm>

#include "kernels/simd.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

// Each lane sums this many numbers before they join the total: a long row's sum is a sum of sums.
inline constexpr extent row_sum_block = 128;

// A batch of the row's elements; lanes past the end hold `fill`.
inline simd::batch load_row(const float* row, extent count, float fill = 0.0f) {
  if (count >= simd::lanes) return simd::load(row);
  float lane[simd::lanes];
  std::fill_n(std::copy_n(row, count, lane), simd::lanes - count, fill);
  return simd::load(lane);
}

inline void store_row(float* row, extent count, simd::batch value) {
  if (count >= simd::lanes) return simd::store(row, value);
  float lane[simd::lanes];
  simd::store(lane, value);
  std::copy_n(lane, count, row);
}

// out[i] = function(row[i]); out may be row.
template <typename Function>
void map_row(const float* row, extent count, float* out, const Function& function) {
  for (extent i = 0; i < count; i += simd::lanes) {
    store_row(out + i, count - i, function(load_row(row + i, count - i)));
  }
}

// to[i] += row[i]
inline void add_row(const float* row, extent count, float* to) {
  for (extent i = 0; i < count; i += simd::lanes) {
    store_row(to + i, count - i, load_row(to + i, count - i) + load_row(row + i, count - i));
  }
}

}  // namespace qkv::kernels
