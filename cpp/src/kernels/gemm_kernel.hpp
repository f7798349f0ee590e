// The micro-kernel under every matrix product: Rows x (Vectors * lanes) sums held in registers.
#pragma once

#include <array>

#include "kernels/simd.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

// Panels are what the kernels read without a gap. A row panel holds `row_panel` rows of the left
// matrix, depth by depth; a column panel holds `column_panel` columns of the right one, likewise.
// 4 rows by 2 vectors keep 8 sums, 2 columns and a broadcast in registers: more spill in V8.
inline constexpr int row_panel = 4;
inline constexpr int panel_vectors = 2;
inline constexpr int column_panel = panel_vectors * simd::lanes;

// How many panels, or how many elements once padded to whole panels, `count` takes.
constexpr extent panels(extent count, extent width) { return (count + width - 1) / width; }
constexpr extent padded(extent count, extent width) { return panels(count, width) * width; }

template <int Rows, int Vectors>
using tile = std::array<std::array<simd::batch, Vectors>, Rows>;

// tile[r] = sum over k < depth of a[k * a_stride + r] * b[k * b_stride ...].
//
// Each sum is one chain of multiply-adds in rising k, whatever the shape of the tile: so the bits
// of an element do not depend on which instance computed it, nor on its neighbours.
template <int Rows, int Vectors>
[[gnu::always_inline]] inline tile<Rows, Vectors> multiply(extent depth, const float* a,
                                                           extent a_stride, const float* b,
                                                           extent b_stride) {
  tile<Rows, Vectors> sum;
  for (auto& row : sum) row.fill(simd::zero());
  for (extent k = 0; k < depth; ++k) {
    std::array<simd::batch, Vectors> column;
    for (int v = 0; v < Vectors; ++v) column[v] = simd::load(b + v * simd::lanes);
    for (int r = 0; r < Rows; ++r) {
      const simd::batch row = simd::broadcast(a[r]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = simd::madd(row, column[v], sum[r][v]);
    }
    a += a_stride;
    b += b_stride;
  }
  return sum;
}

// What becomes of the sums: c = sum, or c = c + sum.
enum class write { store, add };

template <std::size_t Vectors>
[[gnu::always_inline]] inline void write_row(const std::array<simd::batch, Vectors>& sum, float* c,
                                             write mode) {
  for (std::size_t v = 0; v < Vectors; ++v, c += simd::lanes) {
    simd::store(c, mode == write::store ? sum[v] : simd::load(c) + sum[v]);
  }
}

// Not inlined: the engine compiles a small function that is called often sooner and better than one
// long loop.
template <int Rows, int Vectors>
[[gnu::noinline]] void gemm_kernel(extent depth, const float* a, extent a_stride, const float* b,
                                   extent b_stride, float* c, extent c_stride, write mode) {
  const auto sum = multiply<Rows, Vectors>(depth, a, a_stride, b, b_stride);
  for (int r = 0; r < Rows; ++r) write_row(sum[r], c + r * c_stride, mode);
}

}  // namespace qkv::kernels
