// One step of Adam over numbers in a row.
#pragma once

#include "kernels/row.hpp"

namespace qkv::kernels {

// Of one step, rounded to float once; see qkv/adam.hpp.
struct adam_factors {
  float gradient_scale;
  float beta1, rest1;  // rest = 1 - beta
  float beta2, rest2;
  float rate;        // learning_rate / (1 - beta1^t)
  float root_scale;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float decay;  // learning_rate * weight_decay
};

// 0 where |x| < least: what would turn into denormal numbers, ten times slower to compute with.
inline simd::batch unless_tiny(simd::batch x, float least) {
  return xsimd::select(xsimd::abs(x) < simd::broadcast(least), simd::zero(), x);
}

inline void adam_row(float* parameters, const float* gradients, float* means, float* squares,
                     extent count, const adam_factors& factors) {
  const auto all = [](float value) { return simd::broadcast(value); };
  for (extent i = 0; i < count; i += simd::lanes) {
    const extent left = count - i;
    const simd::batch gradient =
        unless_tiny(load_row(gradients + i, left) * all(factors.gradient_scale), 0x1p-50f);
    const simd::batch mean = unless_tiny(
        simd::madd(all(factors.beta1), load_row(means + i, left), all(factors.rest1) * gradient),
        0x1p-100f);
    const simd::batch square =
        unless_tiny(simd::madd(all(factors.beta2), load_row(squares + i, left),
                               all(factors.rest2) * (gradient * gradient)),
                    0x1p-124f);
    const simd::batch root =
        simd::madd(xsimd::sqrt(square), all(factors.root_scale), all(factors.epsilon));
    const simd::batch step =
        xsimd::select(root == simd::zero(), simd::zero(), all(factors.rate) * mean / root);
    const simd::batch parameter = load_row(parameters + i, left);
    store_row(means + i, left, mean);
    store_row(squares + i, left, square);
    store_row(parameters + i, left, (parameter - all(factors.decay) * parameter) - step);
  }
}

// In double, where no square of a float overflows or is lost: it is finite exactly where all are.
inline double sum_of_squares(const float* x, extent count) {
  constexpr int chains = 4;
  double sum[chains] = {};
  extent i = 0;
  for (; i + chains <= count; i += chains) {
    for (int c = 0; c < chains; ++c) sum[c] += static_cast<double>(x[i + c]) * x[i + c];
  }
  for (; i < count; ++i) sum[0] += static_cast<double>(x[i]) * x[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace qkv::kernels
