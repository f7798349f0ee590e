#include "qkv/softmax.hpp"

#include "contiguous.hpp"
#include "kernels/softmax_row.hpp"

namespace qkv {

status softmax_forward(view<const float, 2> x, view<float, 2> out, float* log_sum_exp,
                       thread_pool& pool) {
  if (out.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(x) || !rows_are_contiguous(out)) return status::invalid_argument;
  pool.run(x.shape[0], [&](extent row, int) {
    const auto made = kernels::softmax_row(x.at(row), x.shape[1], out.at(row));
    if (log_sum_exp != nullptr) log_sum_exp[row] = kernels::log_sum_exp(made);
  });
  return status::ok;
}

status softmax_backward(view<const float, 2> d_out, view<const float, 2> x, view<float, 2> d_x,
                        thread_pool& pool) {
  if (d_out.shape != x.shape || d_x.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(d_out) || !rows_are_contiguous(x) || !rows_are_contiguous(d_x)) {
    return status::invalid_argument;
  }
  pool.run(x.shape[0], [&](extent row, int) {
    kernels::softmax_backward_row(d_out.at(row), x.at(row), x.shape[1], d_x.at(row));
  });
  return status::ok;
}

}  // namespace qkv
