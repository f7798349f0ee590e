#include "qkv/embedding.hpp"

#include <algorithm>

#include "contiguous.hpp"
#include "kernels/row.hpp"

namespace qkv {

namespace {

// Columns of one task of the gradient: two tasks must not add to the same row.
constexpr extent column_block = 64;

bool all_below(const std::int32_t* indices, extent count, extent rows) {
  return std::all_of(indices, indices + count,
                     [=](std::int32_t index) { return index >= 0 && index < rows; });
}

}  // namespace

status embedding_forward(view<const float, 2> table, const std::int32_t* indices,
                         view<float, 2> out) {
  const auto [rows, dim] = table.shape;
  const extent count = out.shape[0];
  if (out.shape[1] != dim) return status::shape_mismatch;
  if (!all_below(indices, count, rows) || !rows_are_contiguous(table) ||
      !rows_are_contiguous(out)) {
    return status::invalid_argument;
  }
  for (extent i = 0; i < count; ++i) std::copy_n(table.at(indices[i]), dim, out.at(i));
  return status::ok;
}

status embedding_backward(view<const float, 2> d_out, const std::int32_t* indices,
                          view<float, 2> d_table, thread_pool& pool) {
  const auto [rows, dim] = d_table.shape;
  const extent count = d_out.shape[0];
  if (d_out.shape[1] != dim) return status::shape_mismatch;
  if (!all_below(indices, count, rows) || !rows_are_contiguous(d_out) ||
      !rows_are_contiguous(d_table)) {
    return status::invalid_argument;
  }
  pool.run((dim + column_block - 1) / column_block, [&, rows = rows, dim = dim](extent task, int) {
    const extent column = task * column_block, columns = std::min(column_block, dim - column);
    for (extent r = 0; r < rows; ++r) std::fill_n(d_table.at(r, column), columns, 0.0f);
    for (extent i = 0; i < count; ++i) {
      kernels::add_row(d_out.at(i, column), columns, d_table.at(indices[i], column));
    }
  });
  return status::ok;
}

}  // namespace qkv
