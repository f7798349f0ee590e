// The mask of one head on a panel of scores.
#pragma once

#include <algorithm>

#include "kernels/online_softmax.hpp"
#include "qkv/mask.hpp"

namespace qkv::kernels {

// attention_mask cut down to one batch and head.
struct head_mask {
  attention_mask mask;
  extent batch;
  extent head;
  extent key_len;

  key_range keys_for(extent query) const { return mask.keys_for(query, key_len); }

  bool visible(extent query, extent key) const {
    const key_range keys = keys_for(query);
    return key >= keys.begin && key < keys.end &&
           (!mask.allowed || mask.allowed(batch, head, query, key) != 0);
  }

  // Scores [keys][column_panel] of what is not visible become -Infinity, whatever they were: a
  // forbidden NaN leaves no trace. `queries` <= column_panel.
  void apply(float* scores, extent first_query, extent queries, extent first_key,
             extent keys) const {
    for (extent q = 0; q < queries; ++q) {
      const key_range range = keys_for(first_query + q);
      const extent begin = std::clamp<extent>(range.begin - first_key, 0, keys);
      const extent end = std::clamp<extent>(range.end - first_key, begin, keys);
      for (extent j = 0; j < begin; ++j) scores[j * column_panel + q] = minus_infinity;
      for (extent j = end; j < keys; ++j) scores[j * column_panel + q] = minus_infinity;
      if (!mask.allowed) continue;
      for (extent j = begin; j < end; ++j) {
        if (!mask.allowed(batch, head, first_query + q, first_key + j)) {
          scores[j * column_panel + q] = minus_infinity;
        }
      }
    }
  }
};

}  // namespace qkv::kernels
