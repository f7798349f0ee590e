// Copies matrices into the panels that gemm_kernel reads without a gap.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/gemm_kernel.hpp"

namespace qkv::kernels {

// (rows, depth), `row_stride` apart -> [panel][depth][Width]: rows side by side, the last panel
// filled up with zeros. Row panels of a left matrix, and the columns of a transposed right one.
// Panels are `panel_stride` apart.
template <int Width>
void pack_rows(const float* from, extent row_stride, extent rows, extent depth, float* to,
               extent panel_stride) {
  for (extent row = 0; row < rows; row += Width, to += panel_stride) {
    const extent used = std::min<extent>(Width, rows - row);
    const float* panel = from + row * row_stride;
    extent k = 0;
    if (used < Width) std::fill_n(to, depth * Width, 0.0f);
    // Wider batches than panels are left to the loop below.
    if constexpr (Width % simd::lanes == 0) {
      for (; used == Width && k + simd::lanes <= depth; k += simd::lanes) {
        for (extent r = 0; r < Width; r += simd::lanes) {
          simd::batch block[simd::lanes];
          for (int i = 0; i < simd::lanes; ++i) {
            block[i] = simd::load(panel + (r + i) * row_stride + k);
          }
          simd::transpose(block);
          for (int i = 0; i < simd::lanes; ++i) simd::store(to + (k + i) * Width + r, block[i]);
        }
      }
    }
    for (; k < depth; ++k) {
      for (extent r = 0; r < used; ++r) to[k * Width + r] = panel[r * row_stride + k];
    }
  }
}

template <int Width>
void pack_rows(const float* from, extent row_stride, extent rows, extent depth, float* to) {
  pack_rows<Width>(from, row_stride, rows, depth, to, depth * Width);
}

// (depth, columns), `row_stride` apart -> [panel][depth][Width], filled up with zeros. Column
// panels of a right matrix, and the rows of a transposed left one.
template <int Width = column_panel>
[[gnu::noinline]] void pack_columns(const float* from, extent row_stride, extent depth,
                                    extent columns, float* to) {
  for (extent column = 0; column < columns; column += Width) {
    const extent used = std::min<extent>(Width, columns - column);
    for (extent k = 0; k < depth; ++k, to += Width) {
      const float* source = from + k * row_stride + column;
      // Wider batches than panels are left to the copy.
      if (Width % simd::lanes == 0 && used == Width) {
        for (int v = 0; v < Width; v += simd::lanes) simd::store(to + v, simd::load(source + v));
      } else {
        std::fill(std::copy_n(source, used, to), to + Width, 0.0f);
      }
    }
  }
}

// A panel [count][column_panel] becomes the first `count` elements of `used` rows, `row_stride`
// apart.
inline void unpack_panel(const float* panel, extent count, extent used, float* rows,
                         extent row_stride, write mode) {
  extent k = 0;
  for (; k + simd::lanes <= count; k += simd::lanes) {
    for (extent first = 0; first < used; first += simd::lanes) {
      simd::batch block[simd::lanes];
      for (int i = 0; i < simd::lanes; ++i) {
        block[i] = simd::load(panel + (k + i) * column_panel + first);
      }
      simd::transpose(block);
      const extent end = std::min<extent>(simd::lanes, used - first);
      for (extent r = 0; r < end; ++r) {
        float* to = rows + (first + r) * row_stride + k;
        simd::store(to, mode == write::store ? block[r] : simd::load(to) + block[r]);
      }
    }
  }
  for (; k < count; ++k) {
    for (extent r = 0; r < used; ++r) {
      float& to = rows[r * row_stride + k];
      const float element = panel[k * column_panel + r];
      to = mode == write::store ? element : to + element;
    }
  }
}

// Replaces what is not finite in packed columns by 0 and says whether there was any: a weight of 0
// times Infinity would be NaN, so such values are added apart, where they are visible.
inline bool clear_non_finite(float* panel, extent count) {
  // Two chains, so that they do not wait for each other.
  simd::batch probe[panel_vectors];
  std::fill_n(probe, panel_vectors, simd::zero());
  for (extent i = 0; i < count; i += column_panel) {
    for (int v = 0; v < panel_vectors; ++v) {
      probe[v] = simd::madd(simd::load(panel + i + v * simd::lanes), simd::zero(), probe[v]);
    }
  }
  if (simd::sum_lanes(probe[0] + probe[1]) == 0.0f) return false;
  std::replace_if(panel, panel + count, [](float x) { return !std::isfinite(x); }, 0.0f);
  return true;
}

}  // namespace qkv::kernels
