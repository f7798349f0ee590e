// c (rows, columns) += a (rows, depth) . b for the few rows of a recurrent step. Such a product has
// to read all of b for little arithmetic, so it goes at the speed of the memory that b lies in:
// each weight is read once, in streams, for one row or two at a time, and a is read where it lies.
#pragma once

#include "kernels/gemm.hpp"

namespace qkv::kernels {

// One row by 8 vectors and two by 4 both keep 8 sums in registers, enough to hide a multiply-add.
inline constexpr int panel_sums = 8;
inline constexpr int wide_panel = panel_sums * simd::lanes;

// Columns in panels of `wide_panel`; `panel_stride` apart, with rows `row_stride` apart.
struct panel_matrix {
  const float* data;
  extent depth;
  extent columns;
  extent panel_stride;
  extent row_stride;

  // What pack_columns<wide_panel>() made.
  static panel_matrix packed(const float* panels, extent depth, extent columns) {
    return {panels, depth, columns, depth * wide_panel, wide_panel};
  }

  // Rows where they lie, which is all that a single step is worth. The last panel has to be a whole
  // one.
  static panel_matrix in_place(const float* rows, extent depth, extent columns, extent row_stride) {
    return {rows, depth, columns, wide_panel, row_stride};
  }
};

// c += a . b for Rows rows and as many columns as there are sums. Each sum is gemm_kernel's.
template <int Rows>
[[gnu::noinline]] void panel_kernel(extent depth, left_matrix a, const float* b, extent b_stride,
                                    result_matrix c) {
  constexpr int vectors = panel_sums / Rows;
  tile<Rows, vectors> sum;
  for (auto& row : sum) row.fill(simd::zero());
  for (extent k = 0; k < depth; ++k, b += b_stride) {
    std::array<simd::batch, vectors> column;
    for (int v = 0; v < vectors; ++v) column[v] = simd::load(b + v * simd::lanes);
    for (int r = 0; r < Rows; ++r) {
      const simd::batch row = simd::broadcast(a.data[r * a.row_stride + k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = simd::madd(row, column[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r) write_row(sum[r], c.data + r * c.row_stride, write::add);
}

// A whole panel for at most two rows.
inline void add_panel(extent depth, left_matrix a, const float* b, extent b_stride,
                      result_matrix c) {
  constexpr extent half = wide_panel / 2;
  if (a.rows == 1) return panel_kernel<1>(depth, a, b, b_stride, c);
  panel_kernel<2>(depth, a, b, b_stride, c);
  panel_kernel<2>(depth, a, b + half, b_stride, {c.data + half, c.row_stride});
}

// Where the panel is wider than what is left of c, by way of memory of its own.
inline void add_part(extent depth, left_matrix a, const float* b, extent b_stride, result_matrix c,
                     extent columns) {
  float edge[2 * wide_panel];
  const bool whole = columns >= wide_panel;
  for (extent r = 0; !whole && r < a.rows; ++r) {
    std::copy_n(c.data + r * c.row_stride, columns, edge + r * wide_panel);
  }
  add_panel(depth, a, b, b_stride, whole ? c : result_matrix{edge, wide_panel});
  for (extent r = 0; !whole && r < a.rows; ++r) {
    std::copy_n(edge + r * wide_panel, columns, c.data + r * c.row_stride);
  }
}

// Sums are cut at depth_block and each part is one chain of multiply-adds, whatever the number of
// rows.
inline void multiply_add(left_matrix a, const panel_matrix& b, result_matrix c) {
  for (extent k = 0; k < b.depth; k += depth_block) {
    const extent depth = std::min(depth_block, b.depth - k);
    const float* panel = b.data + k * b.row_stride;
    for (extent j = 0; j < b.columns; j += wide_panel, panel += b.panel_stride) {
      for (extent r = 0; r < a.rows; r += 2) {
        const extent rows = std::min<extent>(2, a.rows - r);
        add_part(depth, {a.data + r * a.row_stride + k, rows, a.row_stride}, panel, b.row_stride,
                 {c.data + r * c.row_stride + j, c.row_stride}, b.columns - j);
      }
    }
  }
}

}  // namespace qkv::kernels
