// One panel of scores: column_panel queries against a tile of keys, as [key][query].
#pragma once

#include "kernels/gemm_kernel.hpp"

namespace qkv::kernels {

// Writes `key_count` keys, rounded up to whole row panels. The scale comes afterwards, so that the
// kernel is the one that all products share: an engine runs one hot loop better than two.
inline void score_tile(extent head_dim, const float* keys, extent key_count, const float* queries,
                       float scale, float* scores) {
  const extent rows = padded(key_count, row_panel);
  for (extent key = 0; key < rows; key += row_panel) {
    gemm_kernel<row_panel, panel_vectors>(head_dim, keys + key * head_dim, row_panel, queries,
                                          column_panel, scores + key * column_panel, column_panel,
                                          write::store);
  }
  const simd::batch factor = simd::broadcast(scale);
  for (extent i = 0; i < rows * column_panel; i += simd::lanes) {
    simd::store(scores + i, simd::load(scores + i) * factor);
  }
}

}  // namespace qkv::kernels
