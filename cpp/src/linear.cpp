#include "qkv/linear.hpp"

#include "contiguous.hpp"
#include "kernels/panel_product.hpp"
#include "packed_product.hpp"

namespace qkv {

namespace {

using kernels::padded;
using kernels::panels;

// Up to here packing the weight would take longer than the product.
constexpr extent few_rows = 16;

status validate(const view<const float, 2>& x, const view<const float, 2>& weight,
                const view<float, 2>& out) {
  const std::array out_shape{x.shape[0], weight.shape[1]};
  if (weight.shape[0] != x.shape[1] || out.shape != out_shape) return status::shape_mismatch;
  const bool contiguous =
      rows_are_contiguous(x) && rows_are_contiguous(weight) && rows_are_contiguous(out);
  return contiguous ? status::ok : status::invalid_argument;
}

// The weight is read where it lies but for the columns that fill no pair of panels: beyond the last
// one there may be no memory.
void few_rows_forward(const view<const float, 2>& x, const view<const float, 2>& weight,
                      const float* bias, const view<float, 2>& out, float* packed,
                      thread_pool& pool) {
  const extent rows = x.shape[0], in_dim = x.shape[1], out_dim = weight.shape[1];
  const kernels::left_matrix left{x.data, rows, x.strides[0]};
  pool.run(panels(out_dim, column_group), [&](extent group, int) {
    const extent first = group * column_group, columns = std::min(column_group, out_dim - first);
    const kernels::result_matrix to{out.at(0, first), out.strides[0]};
    start_rows(bias == nullptr ? nullptr : bias + first, columns, rows, to);
    const auto multiply = [&](const kernels::panel_matrix& part, extent column) {
      kernels::multiply_add(left, part, {to.data + column, to.row_stride},
                            kernels::panel_order::rising);
    };
    const extent whole = columns / kernels::wide_panel * kernels::wide_panel;
    const extent rest = columns - whole, stride = weight.strides[0];
    multiply(kernels::panel_matrix::in_place(weight.at(0, first), in_dim, whole, stride), 0);
    if (rest == 0) return;
    kernels::pack_columns<kernels::half_panel>(weight.at(0, first + whole), stride, in_dim, rest,
                                               packed);
    multiply(kernels::panel_matrix::packed(packed, in_dim, rest), whole);
  });
}

}  // namespace

byte_count linear_workspace_bytes(extent in_dim, extent out_dim, int workers) {
  return workspace::bytes_for(in_dim, padded(out_dim, kernels::wide_panel)) +
         workspace::bytes_for(kernels::gemm_scratch, workers);
}

status linear_forward(view<const float, 2> x, view<const float, 2> weight, const float* bias,
                      view<float, 2> out, workspace memory, thread_pool& pool) {
  if (const status checked = validate(x, weight, out); checked != status::ok) return checked;
  float* packed = memory.floats(weight.shape[0], padded(weight.shape[1], kernels::wide_panel));
  float* scratch = memory.floats(kernels::gemm_scratch, pool.size());
  if (packed == nullptr || scratch == nullptr) return status::out_of_memory;
  if (x.shape[0] <= few_rows) {
    few_rows_forward(x, weight, bias, out, packed, pool);
    return status::ok;
  }
  pack_right(weight, packed, pool);
  packed_product(x, packed, bias, out, scratch, pool);
  return status::ok;
}

}  // namespace qkv
