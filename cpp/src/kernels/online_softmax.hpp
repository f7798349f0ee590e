// Softmax over blocks of keys: each by itself, then merged one after another by their maxima and
// sums (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018). Which thread made
// a block, or when, is no matter to the bits. Scores lie as [key][query]: a lane is a query, so
// nothing crosses lanes.
#pragma once

#include <limits>

#include "kernels/gemm_kernel.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// What is subtracted before exp: the maximum, or 0 where no key was visible yet, because
// (-Infinity) - (-Infinity) would be NaN.
inline simd::batch softmax_shift(simd::batch row_max) {
  return xsimd::select(row_max == simd::broadcast(minus_infinity), simd::zero(), row_max);
}

// The statistics of column_panel queries over some keys: the largest score and the sum of
// exp(score - max).
struct softmax_rows {
  float* max;
  float* sum;
};

// scores [keys][column_panel] become exp(score - max) in place; writes `rows`. A NaN score makes
// its row's sum NaN; a forbidden one (-Infinity) becomes exactly 0.
[[gnu::noinline]] inline void block_softmax(float* scores, extent keys, softmax_rows rows) {
  using panel_row = std::array<simd::batch, panel_vectors>;
  panel_row row_max, shift, sum;
  row_max.fill(simd::broadcast(minus_infinity));
  // Keys in groups, so that the maxima do not all wait for each other.
  constexpr extent group = 4;
  extent key = 0;
  for (; key + group <= keys; key += group) {
    const float* score = scores + key * column_panel;
    for (int v = 0; v < panel_vectors; ++v, score += simd::lanes) {
      const simd::batch first = simd::max(simd::load(score), simd::load(score + column_panel));
      const simd::batch second =
          simd::max(simd::load(score + 2 * column_panel), simd::load(score + 3 * column_panel));
      row_max[v] = simd::max(row_max[v], simd::max(first, second));
    }
  }
  for (; key < keys; ++key) {
    const float* score = scores + key * column_panel;
    for (int v = 0; v < panel_vectors; ++v)
      row_max[v] = simd::max(row_max[v], simd::load(score + v * simd::lanes));
  }
  for (int v = 0; v < panel_vectors; ++v) {
    shift[v] = softmax_shift(row_max[v]);
    sum[v] = simd::zero();
  }
  for (extent key = 0; key < keys; ++key) {
    float* score = scores + key * column_panel;
    // Stored after both are made: a store in between would load the constants of exp again.
    panel_row weight;
    for (int v = 0; v < panel_vectors; ++v)
      weight[v] = simd::exp_nonpositive(simd::load(score + v * simd::lanes) - shift[v]);
    for (int v = 0; v < panel_vectors; ++v) {
      simd::store(score + v * simd::lanes, weight[v]);
      sum[v] = sum[v] + weight[v];
    }
  }
  for (int v = 0; v < panel_vectors; ++v) {
    simd::store(rows.max + v * simd::lanes, row_max[v]);
    simd::store(rows.sum + v * simd::lanes, sum[v]);
  }
}

// By what to multiply what two sets of keys weighed, so that it may be added.
struct merge_factors {
  float before[column_panel];
  float block[column_panel];
};

// Joins the statistics of a block to those of the keys before it.
[[gnu::noinline]] inline merge_factors merge_statistics(softmax_rows rows, softmax_rows block) {
  merge_factors factors;
  for (int lane = 0; lane < column_panel; lane += simd::lanes) {
    const simd::batch before = simd::load(rows.max + lane), added = simd::load(block.max + lane);
    const simd::batch row_max = simd::max(before, added), shift = softmax_shift(row_max);
    const simd::batch shrink = simd::exp_nonpositive(before - shift);
    const simd::batch factor = simd::exp_nonpositive(added - shift);
    const simd::batch sum = simd::load(block.sum + lane) * factor;
    simd::store(rows.max + lane, row_max);
    simd::store(rows.sum + lane, simd::madd(simd::load(rows.sum + lane), shrink, sum));
    simd::store(factors.before + lane, shrink);
    simd::store(factors.block + lane, factor);
  }
  return factors;
}

// to = to * before + block * factor
inline void merge_row(float* to, const float* block, extent count, float before, float factor) {
  const simd::batch shrink = simd::broadcast(before), share = simd::broadcast(factor);
  for (extent d = 0; d < count; d += simd::lanes) {
    simd::store(to + d, simd::madd(simd::load(to + d), shrink, simd::load(block + d) * share));
  }
}

inline simd::batch finished_weight(simd::batch score, simd::batch shift, simd::batch sum) {
  const simd::batch weight = simd::exp_nonpositive(score - shift) / sum;
  return xsimd::select(score == simd::broadcast(minus_infinity), simd::zero(), weight);
}

// scores [keys][column_panel] become weights in place, from the final statistics of their rows.
[[gnu::noinline]] inline void finished_weights(float* scores, extent keys, softmax_rows rows) {
  for (int lane = 0; lane < column_panel; lane += simd::lanes) {
    const simd::batch shift = softmax_shift(simd::load(rows.max + lane));
    const simd::batch sum = simd::load(rows.sum + lane);
    for (extent key = 0; key < keys; ++key) {
      float* score = scores + key * column_panel + lane;
      simd::store(score, finished_weight(simd::load(score), shift, sum));
    }
  }
}

}  // namespace qkv::kernels
