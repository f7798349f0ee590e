// Sums over rows, column by column.
#pragma once

#include <algorithm>

#include "kernels/row.hpp"

namespace qkv::kernels {

// Rows that are summed before they join the total: a long column's sum is a sum of sums, and the
// rows of a block stay in the first cache while their columns are gone through.
inline constexpr extent column_sum_block = 64;

// out[j] = sum of from[r][j] over the rows, `row_stride` apart.
inline void column_sums(const float* from, extent row_stride, extent rows, extent columns,
                        float* out) {
  std::fill_n(out, columns, 0.0f);
  for (extent row = 0; row < rows; row += column_sum_block) {
    const extent end = std::min(rows, row + column_sum_block);
    for (extent j = 0; j < columns; j += simd::lanes) {
      const extent count = columns - j;
      simd::batch sum = simd::zero();
      for (extent r = row; r < end; ++r) {
        sum = sum + load_row(from + r * row_stride + j, count);
      }
      store_row(out + j, count, load_row(out + j, count) + sum);
    }
  }
}

}  // namespace qkv::kernels
