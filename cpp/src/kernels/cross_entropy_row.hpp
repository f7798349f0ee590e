// Cross-entropy of one contiguous row.
#pragma once

#include "kernels/softmax_row.hpp"

namespace qkv::kernels {

// Returns the row's loss; d_logits = (softmax(logits) - [the target]) * share.
inline float cross_entropy_row(const float* logits, extent classes, extent target, float share,
                               float* d_logits) {
  const auto [row_max, sum] = softmax_row(logits, classes, d_logits);
  if (logits[target] != minus_infinity) d_logits[target] -= 1.0f;
  for (extent j = 0; j < classes; j += simd::lanes) {
    const extent count = classes - j;
    const simd::batch gradient = load_row(d_logits + j, count) * simd::broadcast(share);
    store_row(d_logits + j, count, where_visible(logits + j, count, gradient));
  }
  if (sum == 0.0f) return -minus_infinity;
  // The maximum goes out before the logarithm comes in: a small loss keeps its digits beside large
  // logits.
  return std::log(sum) + (row_max - logits[target]);
}

}  // namespace qkv::kernels
