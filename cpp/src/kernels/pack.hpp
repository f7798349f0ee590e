// Copies matrices into the panels that gemm_kernel reads without a gap.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/gemm_kernel.hpp"

namespace qkv::kernels {

// (rows, depth), `row_stride` apart -> [panel][depth][Width]: rows side by side, the last panel
// filled up with zeros. Row panels of a left matrix, and the columns of a transposed right one.
template <int Width>
void pack_rows(const float* from, extent row_stride, extent rows, extent depth, float* to) {
  for (extent row = 0; row < rows; row += Width, to += depth * Width) {
    const extent used = std::min<extent>(Width, rows - row);
    for (extent r = 0; r < Width; ++r) {
      const float* source = from + (row + r) * row_stride;
      for (extent k = 0; k < depth; ++k) to[k * Width + r] = r < used ? source[k] : 0.0f;
    }
  }
}

// (depth, columns), `row_stride` apart -> [panel][depth][column_panel], filled up with zeros.
inline void pack_columns(const float* from, extent row_stride, extent depth, extent columns,
                         float* to) {
  for (extent column = 0; column < columns; column += column_panel) {
    const extent used = std::min<extent>(column_panel, columns - column);
    for (extent k = 0; k < depth; ++k, to += column_panel) {
      const float* source = from + k * row_stride + column;
      std::copy_n(source, used, to);
      std::fill(to + used, to + column_panel, 0.0f);
    }
  }
}

// Replaces what is not finite in packed columns by 0 and says whether there was any: a weight of 0
// times Infinity would be NaN, so such values are added apart, where they are visible.
inline bool clear_non_finite(float* panel, extent count) {
  simd::batch probe = simd::zero();
  for (extent i = 0; i < count; i += simd::lanes) {
    probe = simd::madd(simd::load(panel + i), simd::zero(), probe);
  }
  if (simd::sum_lanes(probe) == 0.0f) return false;
  std::replace_if(panel, panel + count, [](float x) { return !std::isfinite(x); }, 0.0f);
  return true;
}

}  // namespace qkv::kernels
