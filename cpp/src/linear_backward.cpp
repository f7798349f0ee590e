#include "contiguous.hpp"
#include "kernels/column_sums.hpp"
#include "packed_product.hpp"
#include "qkv/linear.hpp"

namespace qkv {

namespace {

using kernels::column_panel;
using kernels::padded;
using kernels::panels;
using kernels::row_block;

// Columns of one task of d_weight: few, since its depth, the rows, is usually its longest axis, and
// in_dim / row_block tasks alone are too few to share out.
constexpr extent weight_column_group = 8 * column_panel;

// Columns of one task of d_bias.
constexpr extent bias_column_group = 64;

status validate(const view<const float, 2>& d_out, const view<const float, 2>& x,
                const view<const float, 2>& weight, const linear_gradients& gradients) {
  const auto& [d_x, d_weight, d_bias] = gradients;
  if (weight.shape[0] != x.shape[1] || d_out.shape != std::array{x.shape[0], weight.shape[1]} ||
      (d_x && d_x.shape != x.shape) || (d_weight && d_weight.shape != weight.shape)) {
    return status::shape_mismatch;
  }
  const bool contiguous = rows_are_contiguous(d_out) && rows_are_contiguous(x) &&
                          rows_are_contiguous(weight) && rows_are_contiguous(d_x) &&
                          rows_are_contiguous(d_weight);
  return contiguous ? status::ok : status::invalid_argument;
}

// d_x = d_out . weight^T
void input_gradient(const view<const float, 2>& d_out, const view<const float, 2>& weight,
                    const view<float, 2>& d_x, float* packed, float* scratch, thread_pool& pool) {
  const auto [in_dim, out_dim] = weight.shape;
  pool.run(panels(in_dim, column_group),
           [&, in_dim = in_dim, out_dim = out_dim](extent group, int) {
             const extent column = group * column_group;
             kernels::pack_rows<column_panel>(weight.at(column), weight.strides[0],
                                              std::min(column_group, in_dim - column), out_dim,
                                              packed + column * out_dim);
           });
  packed_product(d_out, packed, nullptr, d_x, scratch, pool);
}

// d_weight = x^T . d_out
void weight_gradient(const view<const float, 2>& d_out, const view<const float, 2>& x,
                     const view<float, 2>& d_weight, float* packed, float* scratch,
                     thread_pool& pool) {
  const auto [rows, in_dim] = x.shape;
  const extent out_dim = d_out.shape[1], groups = panels(out_dim, weight_column_group);
  pack_right(d_out, packed, pool);
  pool.run(panels(in_dim, row_block) * groups, [&, rows = rows, in_dim = in_dim](extent task,
                                                                                 int worker) {
    const extent row = task / groups * row_block;
    const extent column = task % groups * weight_column_group;
    kernels::gemm_transposed(
        x.at(0, row), x.strides[0], std::min(row_block, in_dim - row), packed + column * rows, rows,
        std::min(weight_column_group, out_dim - column),
        {d_weight.at(row, column), d_weight.strides[0]}, scratch + worker * kernels::gemm_scratch);
  });
}

}  // namespace

byte_count linear_backward_workspace_bytes(extent rows, extent in_dim, extent out_dim,
                                           int workers) {
  const byte_count weight = workspace::bytes_for(out_dim, padded(in_dim, column_panel));
  const byte_count d_out = workspace::bytes_for(rows, padded(out_dim, column_panel));
  return std::max(weight, d_out) + workspace::bytes_for(kernels::gemm_scratch, workers);
}

status linear_backward(view<const float, 2> d_out, view<const float, 2> x,
                       view<const float, 2> weight, const linear_gradients& gradients,
                       workspace memory, thread_pool& pool) {
  const status checked = validate(d_out, x, weight, gradients);
  if (checked != status::ok) return checked;
  const auto [rows, out_dim] = d_out.shape;
  const extent in_dim = x.shape[1];
  float* scratch = memory.floats(kernels::gemm_scratch, pool.size());
  // Both packed matrices have the rest, one after the other.
  float* packed_weight = workspace(memory).floats(out_dim, padded(in_dim, column_panel));
  float* packed_d_out = workspace(memory).floats(rows, padded(out_dim, column_panel));
  if (scratch == nullptr || packed_weight == nullptr || packed_d_out == nullptr) {
    return status::out_of_memory;
  }
  if (gradients.d_x) input_gradient(d_out, weight, gradients.d_x, packed_weight, scratch, pool);
  if (gradients.d_weight) {
    weight_gradient(d_out, x, gradients.d_weight, packed_d_out, scratch, pool);
  }
  if (gradients.d_bias != nullptr) {
    pool.run(panels(out_dim, bias_column_group),
             [&, rows = rows, out_dim = out_dim](extent group, int) {
               const extent column = group * bias_column_group;
               kernels::column_sums(d_out.at(0, column), d_out.strides[0], rows,
                                    std::min(bias_column_group, out_dim - column),
                                    gradients.d_bias + column);
             });
  }
  return status::ok;
}

}  // namespace qkv
