#include "contiguous.hpp"
#include "kernels/column_sums.hpp"
#include "kernels/norm_backward_row.hpp"
#include "qkv/norm.hpp"

namespace qkv {

namespace {

// Rows of one task, which adds up their gradients of gamma and beta; the tasks' sums are added up
// afterwards, so that their order does not depend on the threads.
constexpr extent row_block = 64;

// Columns of one task of those sums.
constexpr extent column_block = 64;

extent blocks(extent rows) { return (rows + row_block - 1) / row_block; }

status validate(const view<const float, 2>& d_out, const view<const float, 2>& x, float epsilon,
                const view<float, 2>& d_x) {
  if (d_out.shape != x.shape || d_x.shape != x.shape) return status::shape_mismatch;
  const bool contiguous =
      rows_are_contiguous(d_out) && rows_are_contiguous(x) && rows_are_contiguous(d_x);
  return contiguous && epsilon >= 0.0f ? status::ok : status::invalid_argument;
}

void sum_blocks(const float* partial, extent count, extent columns, float* out, thread_pool& pool) {
  if (out == nullptr) return;
  pool.run((columns + column_block - 1) / column_block, [&](extent task, int) {
    const extent column = task * column_block;
    kernels::column_sums(partial + column, columns, count, std::min(column_block, columns - column),
                         out + column);
  });
}

status norm_backward(const view<const float, 2>& d_out, const view<const float, 2>& x,
                     const float* gamma, float epsilon, const norm_gradients& gradients,
                     bool has_mean, workspace memory, thread_pool& pool) {
  const auto& [d_x, d_gamma, d_beta] = gradients;
  if (const status checked = validate(d_out, x, epsilon, d_x); checked != status::ok) {
    return checked;
  }
  const auto [rows, columns] = x.shape;
  float* gamma_blocks = memory.floats(blocks(rows), columns);
  float* beta_blocks = memory.floats(blocks(rows), columns);
  if (gamma_blocks == nullptr || beta_blocks == nullptr) return status::out_of_memory;
  const auto normalization_of =
      has_mean ? kernels::layer_normalization : kernels::rms_normalization;
  const bool wants_gamma = d_gamma != nullptr, wants_beta = d_beta != nullptr;
  pool.run(blocks(rows), [&, d_x = d_x, rows = rows, columns = columns](extent task, int) {
    const kernels::column_gradients to{wants_gamma ? gamma_blocks + task * columns : nullptr,
                                       wants_beta ? beta_blocks + task * columns : nullptr};
    for (float* sum : {to.gamma, to.beta}) {
      if (sum != nullptr) std::fill_n(sum, columns, 0.0f);
    }
    for (extent row = task * row_block; row < std::min(rows, (task + 1) * row_block); ++row) {
      kernels::normalization made = normalization_of(x.at(row), columns, epsilon);
      made.gamma = gamma;
      kernels::norm_gradient(made, has_mean, d_out.at(row), x.at(row), columns)
          .write(d_x.at(row), to);
    }
  });
  sum_blocks(gamma_blocks, blocks(rows), columns, d_gamma, pool);
  sum_blocks(beta_blocks, blocks(rows), columns, d_beta, pool);
  return status::ok;
}

}  // namespace

byte_count norm_backward_workspace_bytes(extent rows, extent columns) {
  return 2 * workspace::bytes_for(blocks(rows), columns);
}

status layer_norm_backward(view<const float, 2> d_out, view<const float, 2> x, const float* gamma,
                           float epsilon, const norm_gradients& gradients, workspace memory,
                           thread_pool& pool) {
  return norm_backward(d_out, x, gamma, epsilon, gradients, true, memory, pool);
}

status rms_norm_backward(view<const float, 2> d_out, view<const float, 2> x, const float* gamma,
                         float epsilon, const norm_gradients& gradients, workspace memory,
                         thread_pool& pool) {
  const norm_gradients without_beta{gradients.d_x, gradients.d_gamma};
  return norm_backward(d_out, x, gamma, epsilon, without_beta, false, memory, pool);
}

}  // namespace qkv
