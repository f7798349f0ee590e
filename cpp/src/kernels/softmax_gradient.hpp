// The way back through a softmax whose row statistics are gathered first (Dao, "FlashAttention-2",
// 2023, section 3.1.2). Panels lie as [key][query], as in online_softmax.hpp.
#pragma once

#include "kernels/online_softmax.hpp"

namespace qkv::kernels {

// The statistics of column_panel queries.
struct gradient_rows {
  float* max;      // of the scores
  float* sum;      // of exp(score - max)
  float* product;  // of exp(score - max) with d_weights, summed
};

// max = the largest score, where it is larger. A NaN is passed over: the sum will hold it.
[[gnu::noinline]] inline void raise_maxima(const float* scores, extent keys, float* max) {
  for (int lane = 0; lane < column_panel; lane += simd::lanes) {
    simd::batch first = simd::load(max + lane), second = first;
    const float* score = scores + lane;
    extent key = 0;
    // Two chains, so that they do not wait for each other.
    for (; key + 2 <= keys; key += 2, score += 2 * column_panel) {
      first = simd::max(first, simd::load(score));
      second = simd::max(second, simd::load(score + column_panel));
    }
    if (key < keys) first = simd::max(first, simd::load(score));
    simd::store(max + lane, simd::max(first, second));
  }
}

// scores become exp(score - max) in place, and their sums join the rows'. A hidden score stays
// -Infinity, and its d_weights, which may be NaN, joins nothing.
[[gnu::noinline]] inline void exponentials(float* scores, const float* d_weights, extent keys,
                                           gradient_rows rows) {
  using panel_row = std::array<simd::batch, panel_vectors>;
  panel_row shift, sum, product;
  for (int v = 0; v < panel_vectors; ++v) {
    shift[v] = softmax_shift(simd::load(rows.max + v * simd::lanes));
    sum[v] = product[v] = simd::zero();
  }
  const simd::batch hidden = simd::constant<minus_infinity>();
  for (extent i = 0; i < keys * column_panel; i += column_panel) {
    for (int v = 0; v < panel_vectors; ++v) {
      float* at = scores + i + v * simd::lanes;
      const simd::batch score = simd::load(at);
      const simd::batch power = simd::exp_nonpositive(score - shift[v]);
      const simd::batch d_weight = simd::load(d_weights + i + v * simd::lanes);
      const auto is_hidden = score == hidden;
      simd::store(at, xsimd::select(is_hidden, score, power));
      sum[v] = sum[v] + power;
      product[v] = simd::madd(power, xsimd::select(is_hidden, simd::zero(), d_weight), product[v]);
    }
  }
  for (int v = 0; v < panel_vectors; ++v) {
    float* row_sum = rows.sum + v * simd::lanes;
    float* row_product = rows.product + v * simd::lanes;
    simd::store(row_sum, simd::load(row_sum) + sum[v]);
    simd::store(row_product, simd::load(row_product) + product[v]);
  }
}

// What the gradients of column_panel queries start from.
struct gradient_factors {
  const float* inverse;  // 1 / sum; 0 where nothing is visible
  const float* mean;     // of d_weights, each as often as its weight says
};

// Exponentials become weights, and d_weights become `scale` times the gradients of the scores, in
// place. Both are 0 where a score is hidden, whatever the row is.
[[gnu::noinline]] inline void score_gradients(float* exponentials, float* d_weights, extent keys,
                                              gradient_factors rows, float scale) {
  using panel_row = std::array<simd::batch, panel_vectors>;
  panel_row inverse, mean;
  for (int v = 0; v < panel_vectors; ++v) {
    inverse[v] = simd::load(rows.inverse + v * simd::lanes);
    mean[v] = simd::load(rows.mean + v * simd::lanes);
  }
  const simd::batch hidden = simd::constant<minus_infinity>(), factor = simd::broadcast(scale);
  for (extent i = 0; i < keys * column_panel; i += column_panel) {
    for (int v = 0; v < panel_vectors; ++v) {
      float* weight_at = exponentials + i + v * simd::lanes;
      float* gradient_at = d_weights + i + v * simd::lanes;
      const simd::batch power = simd::load(weight_at);
      const auto is_hidden = power == hidden;
      const simd::batch weight = power * inverse[v];
      const simd::batch gradient = weight * (simd::load(gradient_at) - mean[v]) * factor;
      simd::store(weight_at, xsimd::select(is_hidden, simd::zero(), weight));
      simd::store(gradient_at, xsimd::select(is_hidden, simd::zero(), gradient));
    }
  }
}

// gradients *= the slope of cap * tanh(score / cap), which is 4 p / (1 + p)^2 with
// p = exp(-2 |score| / cap): next to a cap, 1 - tanh^2 would have no digits left. A gradient of 0
// stays 0, since a hidden score may be NaN.
inline void cap_gradients(float* gradients, const float* scores, extent keys, float cap) {
  const simd::batch limit = simd::broadcast(cap), one = simd::constant<1.0f>();
  for (extent i = 0; i < keys * column_panel; i += simd::lanes) {
    const simd::batch twice = simd::constant<-2.0f>() * xsimd::abs(simd::load(scores + i));
    const simd::batch power = simd::exp_nonpositive(twice / limit);
    const simd::batch slope = simd::constant<4.0f>() * power / ((one + power) * (one + power));
    const simd::batch gradient = simd::load(gradients + i);
    simd::store(gradients + i, xsimd::select(gradient == simd::zero(), gradient, gradient * slope));
  }
}

}  // namespace qkv::kernels
