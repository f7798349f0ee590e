#include "qkv/embedding.hpp"

#include <algorithm>
#include <numeric>

#include "contiguous.hpp"
#include "kernels/row.hpp"

namespace qkv {

namespace {

// What of the gradient is one task.
constexpr extent row_block = 64, column_block = 64;

bool all_below(const std::int32_t* indices, extent count, extent rows) {
  return std::all_of(indices, indices + count,
                     [=](std::int32_t index) { return index >= 0 && index < rows; });
}

// The places that name each row, in rising order: those of row r are places[begins[r]] to
// places[begins[r + 1]].
struct places_of_rows {
  const std::int32_t* places;
  const std::int32_t* begins;

  // `places` has room for `count` numbers, `begins` for rows + 1.
  places_of_rows(const std::int32_t* indices, extent count, extent rows, std::int32_t* places,
                 std::int32_t* begins)
      : places(places), begins(begins) {
    std::fill_n(begins, rows + 1, 0);
    for (extent i = 0; i < count; ++i) ++begins[indices[i]];
    std::inclusive_scan(begins, begins + rows + 1, begins);
    // Each row's end moves to its begin.
    for (extent i = count; i-- > 0;) places[--begins[indices[i]]] = static_cast<std::int32_t>(i);
  }
};

// to[j] = the sum of d_out[place][j] over the places, columns <= column_block. A row may be named a
// million times, so that its sum is one of sums of a few.
void sum_rows(const view<const float, 2>& d_out, extent column, const std::int32_t* place,
              const std::int32_t* end, float* to, extent columns) {
  double total[column_block] = {};
  while (place != end) {
    const std::int32_t* next = place + std::min<extent>(kernels::row_sum_block, end - place);
    std::fill_n(to, columns, 0.0f);
    for (; place != next; ++place) kernels::add_row(d_out.at(*place, column), columns, to);
    for (extent j = 0; j < columns; ++j) total[j] += to[j];
  }
  std::copy_n(total, columns, to);
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

byte_count embedding_backward_workspace_bytes(extent count, extent rows) {
  return workspace::bytes_for(count) + workspace::bytes_for(rows + 1);
}

status embedding_backward(view<const float, 2> d_out, const std::int32_t* indices,
                          view<float, 2> d_table, workspace memory, thread_pool& pool) {
  const auto [rows, dim] = d_table.shape;
  const extent count = d_out.shape[0];
  if (d_out.shape[1] != dim) return status::shape_mismatch;
  if (!all_below(indices, count, rows) || !rows_are_contiguous(d_out) ||
      !rows_are_contiguous(d_table)) {
    return status::invalid_argument;
  }
  std::int32_t* places = memory.integers(count);
  std::int32_t* begins = memory.integers(rows + 1);
  if (places == nullptr || begins == nullptr) return status::out_of_memory;
  const places_of_rows named(indices, count, rows, places, begins);
  const extent row_blocks = (rows + row_block - 1) / row_block;
  const extent column_blocks = (dim + column_block - 1) / column_block;
  pool.run(row_blocks * column_blocks, [&, rows = rows, dim = dim](extent task, int) {
    const extent column = task % column_blocks * column_block;
    const extent columns = std::min(column_block, dim - column);
    const extent first = task / column_blocks * row_block;
    for (extent r = first; r < std::min(first + row_block, rows); ++r) {
      sum_rows(d_out, column, named.places + named.begins[r], named.places + named.begins[r + 1],
               d_table.at(r, column), columns);
    }
  });
  return status::ok;
}

}  // namespace qkv
