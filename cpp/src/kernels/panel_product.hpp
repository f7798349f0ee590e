// c (rows, columns) += a (rows, depth) . b for the few rows of a recurrent step. Such a product has
// to read all of b for little arithmetic, so it goes at the speed of the memory that b lies in:
// each weight is read once, in streams, for one row or two at a time.
#pragma once

#include "kernels/gemm.hpp"

namespace qkv::kernels {

// One row by 8 vectors and two by 4 both keep 8 sums in registers, enough to hide a multiply-add.
inline constexpr int wide_vectors = 8;
inline constexpr int wide_panel = wide_vectors * simd::lanes;
inline constexpr int row_pair = 2;
inline constexpr int pair_vectors = wide_vectors / row_pair;

// Columns in panels of `wide_panel`; `panel_stride` apart, with rows `row_stride` apart.
struct panel_matrix {
  const float* data;
  extent depth;
  extent columns;
  extent panel_stride;
  extent row_stride;

  const float* at(extent row, extent column) const {
    return data + column / wide_panel * panel_stride + row * row_stride + column % wide_panel;
  }

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

// Rows of the left matrix side by side, depth by depth.
struct left_panel {
  const float* data;
  extent stride;
};

// Columns of b from `column` on, as many as the kernel has; the matrix may end before.
template <int Rows, int Vectors>
void add_columns(extent depth, left_panel a, const panel_matrix& b, extent row, extent column,
                 result_matrix c) {
  constexpr extent width = Vectors * simd::lanes;
  const auto kernel = gemm_kernel<Rows, Vectors>;
  const float* from = b.at(row, column);
  if (column + width <= b.columns) {
    kernel(depth, a.data, a.stride, from, b.row_stride, c.data + column, c.row_stride, write::add);
    return;
  }
  float edge[Rows * width];
  kernel(depth, a.data, a.stride, from, b.row_stride, edge, width, write::store);
  for (extent r = 0; r < Rows; ++r) {
    for (extent j = column; j < b.columns; ++j) {
      c.data[r * c.row_stride + j] += edge[r * width + j - column];
    }
  }
}

// Rows [row, row + depth) of b, by the rows of a in pairs as pack_rows() made them, or by one row
// as it lies.
inline void add_depth_block(extent depth, left_panel a, extent rows, const panel_matrix& b,
                            extent row, result_matrix c) {
  for (extent panel = 0; panel < b.columns; panel += wide_panel) {
    const extent end = std::min(panel + wide_panel, b.columns);
    result_matrix to = c;
    left_panel pair = a;
    for (extent r = 0; r < rows; r += row_pair) {
      if (r + row_pair > rows) {
        add_columns<1, wide_vectors>(depth, pair, b, row, panel, to);
        break;
      }
      for (extent j = panel; j < end; j += pair_vectors * simd::lanes) {
        add_columns<row_pair, pair_vectors>(depth, pair, b, row, j, to);
      }
      pair.data += row_pair * depth;
      to.data += row_pair * to.row_stride;
    }
  }
}

// Sums are cut at depth_block and each part is one chain of multiply-adds, whatever the number of
// rows, which is at most row_block. `scratch` holds gemm_scratch floats.
inline void multiply_add(left_matrix a, const panel_matrix& b, result_matrix c, float* scratch) {
  for (extent k = 0; k < b.depth; k += depth_block) {
    const extent block = std::min(depth_block, b.depth - k);
    if (a.rows == 1) {
      add_depth_block(block, {a.data + k, 1}, 1, b, k, c);
    } else {
      pack_rows<row_pair>(a.data + k, a.row_stride, a.rows, block, scratch);
      add_depth_block(block, {scratch, row_pair}, a.rows, b, k, c);
    }
  }
}

}  // namespace qkv::kernels
