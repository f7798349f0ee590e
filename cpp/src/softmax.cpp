#include "qkv/softmax.hpp"

#include "contiguous.hpp"
#include "kernels/softmax_row.hpp"

namespace qkv {

status softmax_forward(view<const float, 2> x, view<float, 2> out, float* log_sum_exp,
                       thread_pool& pool) {
  if (out.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(x) || !rows_are_contiguous(out)) return status::invalid_argument;
  pool.run(x.shape[0], [&](extent row, int) {
    const float total = kernels::softmax_row(x.at(row), x.shape[1], out.at(row));
    if (log_sum_exp != nullptr) log_sum_exp[row] = total;
  });
  return status::ok;
}

}  // namespace qkv
