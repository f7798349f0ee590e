// A product with a packed right matrix, cut into tasks: what linear layers are made of, forwards
// and backwards.
#pragma once

#include "kernels/gemm.hpp"
#include "qkv/thread_pool.hpp"

namespace qkv {

// Columns of one task: wide enough that packing the rows again for each group costs little.
inline constexpr extent column_group = 32 * kernels::column_panel;

// The bias, or 0, which products are added to.
inline void start_rows(const float* bias, extent columns, extent rows, kernels::result_matrix to) {
  for (extent r = 0; r < rows; ++r) {
    float* row = to.data + r * to.row_stride;
    bias != nullptr ? std::copy_n(bias, columns, row) : std::fill_n(row, columns, 0.0f);
  }
}

// out (rows, columns) = x (rows, depth) . packed + bias, which may be null. scratch:
// kernels::gemm_scratch floats for each worker.
inline void packed_product(const view<const float, 2>& x, const float* packed, const float* bias,
                           const view<float, 2>& out, float* scratch, thread_pool& pool) {
  const auto [rows, depth] = x.shape;
  const extent columns = out.shape[1], groups = kernels::panels(columns, column_group);
  pool.run(kernels::panels(rows, kernels::row_block) * groups,
           [&, rows = rows, depth = depth](extent task, int worker) {
             const extent row = task / groups * kernels::row_block;
             const extent column = task % groups * column_group;
             const extent row_count = std::min(kernels::row_block, rows - row);
             const extent count = std::min(column_group, columns - column);
             const kernels::result_matrix to{out.at(row, column), out.strides[0]};
             if (bias != nullptr) start_rows(bias + column, count, row_count, to);
             kernels::gemm({x.at(row), row_count, x.strides[0]}, packed + column * depth, depth,
                           count, to, bias != nullptr ? kernels::write::add : kernels::write::store,
                           scratch + worker * kernels::gemm_scratch);
           });
}

// Packs a right matrix (depth, columns) by groups of columns; `to`: depth * padded(columns) floats.
inline void pack_right(const view<const float, 2>& matrix, float* to, thread_pool& pool) {
  const auto [depth, columns] = matrix.shape;
  pool.run(kernels::panels(columns, column_group),
           [&, depth = depth, columns = columns](extent group, int) {
             const extent column = group * column_group;
             kernels::pack_columns(matrix.at(0, column), matrix.strides[0], depth,
                                   std::min(column_group, columns - column), to + column * depth);
           });
}

}  // namespace qkv
