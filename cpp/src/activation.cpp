#include "qkv/activation.hpp"

#include "contiguous.hpp"
#include "kernels/activation.hpp"

namespace qkv {

namespace {

// Elements of one task.
constexpr extent activation_block = 4096;

extent blocks(extent count) { return (count + activation_block - 1) / activation_block; }

using row_function = void (*)(const float* row, extent count, float* out);

status activate(const view<const float, 1>& x, row_function function, const view<float, 1>& out,
                thread_pool& pool) {
  if (out.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(x) || !rows_are_contiguous(out)) return status::invalid_argument;
  const extent count = x.shape[0];
  pool.run(blocks(count), [&](extent task, int) {
    const extent begin = task * activation_block;
    function(x.data + begin, std::min(activation_block, count - begin), out.data + begin);
  });
  return status::ok;
}

using backward_function = void (*)(const float* d_out, const float* x, extent count, float* d_x);

status differentiate(const view<const float, 1>& d_out, const view<const float, 1>& x,
                     backward_function function, const view<float, 1>& d_x, thread_pool& pool) {
  if (d_out.shape != x.shape || d_x.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(d_out) || !rows_are_contiguous(x) || !rows_are_contiguous(d_x)) {
    return status::invalid_argument;
  }
  const extent count = x.shape[0];
  pool.run(blocks(count), [&](extent task, int) {
    const extent begin = task * activation_block;
    function(d_out.data + begin, x.data + begin, std::min(activation_block, count - begin),
             d_x.data + begin);
  });
  return status::ok;
}

}  // namespace

status gelu_forward(view<const float, 1> x, gelu_approximation approximation, view<float, 1> out,
                    thread_pool& pool) {
  const bool exact = approximation == gelu_approximation::none;
  return activate(x, exact ? kernels::gelu_row : kernels::gelu_tanh_row, out, pool);
}

status silu_forward(view<const float, 1> x, view<float, 1> out, thread_pool& pool) {
  return activate(x, kernels::silu_row, out, pool);
}

status gelu_backward(view<const float, 1> d_out, view<const float, 1> x,
                     gelu_approximation approximation, view<float, 1> d_x, thread_pool& pool) {
  const bool exact = approximation == gelu_approximation::none;
  return differentiate(
      d_out, x, exact ? kernels::gelu_backward_row : kernels::gelu_tanh_backward_row, d_x, pool);
}

status silu_backward(view<const float, 1> d_out, view<const float, 1> x, view<float, 1> d_x,
                     thread_pool& pool) {
  return differentiate(d_out, x, kernels::silu_backward_row, d_x, pool);
}

}  // namespace qkv
