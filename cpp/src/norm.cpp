#include "qkv/norm.hpp"

#include "contiguous.hpp"
#include "kernels/norm_row.hpp"

namespace qkv {

namespace {

using normalize = kernels::normalization (*)(const float* x, extent columns, float epsilon);

status norm_forward(const view<const float, 2>& x, const float* gamma, const float* beta,
                    float epsilon, const view<float, 2>& out, thread_pool& pool,
                    normalize normalization_of) {
  if (out.shape != x.shape) return status::shape_mismatch;
  if (!rows_are_contiguous(x) || !rows_are_contiguous(out)) return status::invalid_argument;
  if (!(epsilon >= 0.0f)) return status::invalid_argument;
  const auto [rows, columns] = x.shape;
  pool.run(rows, [&, columns = columns](extent row, int) {
    kernels::normalization normalization = normalization_of(x.at(row), columns, epsilon);
    normalization.gamma = gamma;
    normalization.beta = beta;
    normalization.apply(x.at(row), columns, out.at(row));
  });
  return status::ok;
}

}  // namespace

status layer_norm_forward(view<const float, 2> x, const float* gamma, const float* beta,
                          float epsilon, view<float, 2> out, thread_pool& pool) {
  return norm_forward(x, gamma, beta, epsilon, out, pool, kernels::layer_normalization);
}

status rms_norm_forward(view<const float, 2> x, const float* gamma, float epsilon,
                        view<float, 2> out, thread_pool& pool) {
  return norm_forward(x, gamma, nullptr, epsilon, out, pool, kernels::rms_normalization);
}

}  // namespace qkv
