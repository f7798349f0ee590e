#include "qkv/linear.hpp"

#include "contiguous.hpp"
#include "kernels/gemm.hpp"

namespace qkv {

namespace {

using kernels::column_panel;
using kernels::padded;
using kernels::panels;
using kernels::row_block;

// Columns of one task: wide enough that packing the rows again for each group costs little.
constexpr extent column_group = 32 * column_panel;

status validate(const view<const float, 2>& x, const view<const float, 2>& weight,
                const view<float, 2>& out) {
  const std::array out_shape{x.shape[0], weight.shape[1]};
  if (weight.shape[0] != x.shape[1] || out.shape != out_shape) return status::shape_mismatch;
  const bool contiguous =
      rows_are_contiguous(x) && rows_are_contiguous(weight) && rows_are_contiguous(out);
  return contiguous ? status::ok : status::invalid_argument;
}

}  // namespace

byte_count linear_workspace_bytes(extent in_dim, extent out_dim, int workers) {
  return workspace::bytes_for(in_dim, padded(out_dim, column_panel)) +
         workspace::bytes_for(kernels::gemm_scratch, workers);
}

status linear_forward(view<const float, 2> x, view<const float, 2> weight, const float* bias,
                      view<float, 2> out, workspace memory, thread_pool& pool) {
  if (const status checked = validate(x, weight, out); checked != status::ok) return checked;
  const extent rows = x.shape[0], in_dim = x.shape[1], out_dim = weight.shape[1];
  float* packed = memory.floats(in_dim, padded(out_dim, column_panel));
  float* scratch = memory.floats(kernels::gemm_scratch, pool.size());
  if (packed == nullptr || scratch == nullptr) return status::out_of_memory;

  const extent groups = panels(out_dim, column_group);
  pool.run(groups, [&](extent group, int) {
    const extent column = group * column_group;
    kernels::pack_columns(weight.at(0, column), weight.strides[0], in_dim,
                          std::min(column_group, out_dim - column), packed + column * in_dim);
  });
  pool.run(panels(rows, row_block) * groups, [&](extent task, int worker) {
    const extent row = task / groups * row_block;
    const extent column = task % groups * column_group;
    const extent row_count = std::min(row_block, rows - row);
    const extent columns = std::min(column_group, out_dim - column);
    const kernels::result_matrix to{out.at(row, column), out.strides[0]};
    if (bias != nullptr) {
      for (extent r = 0; r < row_count; ++r) {
        std::copy_n(bias + column, columns, to.data + r * to.row_stride);
      }
    }
    kernels::gemm({x.at(row), row_count, x.strides[0]}, packed + column * in_dim, in_dim, columns,
                  to, bias != nullptr ? kernels::write::add : kernels::write::store,
                  scratch + worker * kernels::gemm_scratch);
  });
  return status::ok;
}

}  // namespace qkv
