// c (rows, columns) = a (rows, depth) times packed columns: gemm_kernel with its tails and blocks.
#pragma once

#include "kernels/pack.hpp"

namespace qkv::kernels {

// Sums over the depth are cut here: a block of a column panel stays in the first cache, and a long
// sum becomes a sum of short ones, which keeps its rounding error small.
inline constexpr extent depth_block = 256;
// Rows packed at a time; `gemm_scratch` floats hold one depth block of them.
inline constexpr extent row_block = 64;
inline constexpr extent gemm_scratch = row_block * depth_block;

struct left_matrix {
  const float* data;
  extent rows;
  extent row_stride;
};

struct result_matrix {
  float* data;
  extent row_stride;
};

// A tile of at most row_panel x column_panel elements.
inline void gemm_tile(extent rows, extent columns, extent depth, const float* a, extent a_stride,
                      const float* b, result_matrix c, write mode) {
  if (columns < column_panel) {
    // The panel is wider than what is left of c, so it goes through a tile of its own.
    float edge[row_panel * column_panel];
    gemm_tile(rows, column_panel, depth, a, a_stride, b, {edge, column_panel}, write::store);
    for (extent r = 0; r < rows; ++r) {
      float* to = c.data + r * c.row_stride;
      const float* sum = edge + r * column_panel;
      for (extent j = 0; j < columns; ++j) to[j] = mode == write::store ? sum[j] : to[j] + sum[j];
    }
    return;
  }
  const auto kernel = rows == 1   ? gemm_kernel<1, panel_vectors>
                      : rows == 2 ? gemm_kernel<2, panel_vectors>
                      : rows == 3 ? gemm_kernel<3, panel_vectors>
                                  : gemm_kernel<row_panel, panel_vectors>;
  kernel(depth, a, a_stride, b, column_panel, c.data, c.row_stride, mode);
}

// Row panels of one depth block times column panels of it, which are `panel_stride` apart.
inline void gemm_panels(const float* a, extent rows, const float* b, extent panel_stride,
                        extent depth, extent columns, result_matrix c, write mode) {
  for (extent j = 0; j < columns; j += column_panel, b += panel_stride) {
    for (extent r = 0; r < rows; r += row_panel) {
      gemm_tile(std::min<extent>(row_panel, rows - r), std::min<extent>(column_panel, columns - j),
                depth, a + r * depth, row_panel, b, {c.data + r * c.row_stride + j, c.row_stride},
                mode);
    }
  }
}

// A block of rows, packed into row panels.
inline void gemm_rows(left_matrix a, const float* packed, extent depth, extent columns,
                      result_matrix c, write mode, float* scratch) {
  for (extent k = 0; k < depth; k += depth_block, mode = write::add) {
    const extent block = std::min(depth_block, depth - k);
    pack_rows<row_panel>(a.data + k, a.row_stride, a.rows, block, scratch);
    gemm_panels(scratch, a.rows, packed + k * column_panel, depth * column_panel, block, columns, c,
                mode);
  }
}

// c (rows, columns) = the transpose of a (depth, rows) times packed columns, for at most row_block
// rows; packed and scratch as of gemm(). Elements have the bits that gemm() would give them.
inline void gemm_transposed(const float* a, extent row_stride, extent rows, const float* packed,
                            extent depth, extent columns, result_matrix c, float* scratch) {
  write mode = write::store;
  if (depth == 0) {
    for (extent r = 0; r < rows; ++r) std::fill_n(c.data + r * c.row_stride, columns, 0.0f);
  }
  for (extent k = 0; k < depth; k += depth_block, mode = write::add) {
    const extent block = std::min(depth_block, depth - k);
    pack_columns<row_panel>(a + k * row_stride, row_stride, block, rows, scratch);
    gemm_panels(scratch, rows, packed + k * column_panel, depth * column_panel, block, columns, c,
                mode);
  }
}

// `packed` is what pack_columns() made of a (depth, columns) matrix; `scratch` holds gemm_scratch
// floats. With write::add the product is added to what c holds, so a depth of 0 leaves c as it is;
// with write::store it gives zeros.
inline void gemm(left_matrix a, const float* packed, extent depth, extent columns, result_matrix c,
                 write mode, float* scratch) {
  for (extent row = 0; row < a.rows; row += row_block) {
    const left_matrix block{a.data + row * a.row_stride, std::min(row_block, a.rows - row),
                            a.row_stride};
    const result_matrix to{c.data + row * c.row_stride, c.row_stride};
    if (depth == 0 && mode == write::store) {
      for (extent r = 0; r < block.rows; ++r)
        std::fill_n(to.data + r * to.row_stride, columns, 0.0f);
    } else {
      gemm_rows(block, packed, depth, columns, to, mode, scratch);
    }
  }
}

}  // namespace qkv::kernels
