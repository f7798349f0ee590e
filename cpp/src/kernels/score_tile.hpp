// One panel of scores: column_panel queries against a tile of keys, as [key][query].
#pragma once

#include "kernels/gemm_kernel.hpp"

namespace qkv::kernels {

// row_panel keys (a row panel) against column_panel queries (a column panel).
[[gnu::noinline]] inline void score_kernel(extent head_dim, const float* keys, const float* queries,
                                           float scale, float* scores) {
  const auto sum =
      multiply<row_panel, panel_vectors>(head_dim, keys, row_panel, queries, column_panel);
  const simd::batch factor = simd::broadcast(scale);
  for (int r = 0; r < row_panel; ++r) {
    for (int v = 0; v < panel_vectors; ++v) {
      simd::store(scores + r * column_panel + v * simd::lanes, sum[r][v] * factor);
    }
  }
}

// Writes `key_count` keys, rounded up to whole row panels.
inline void score_tile(extent head_dim, const float* keys, extent key_count, const float* queries,
                       float scale, float* scores) {
  for (extent key = 0; key < key_count; key += row_panel) {
    score_kernel(head_dim, keys + key * head_dim, queries, scale, scores + key * column_panel);
  }
}

}  // namespace qkv::kernels
