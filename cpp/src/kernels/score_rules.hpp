// What becomes of a panel of scaled scores [key][query] before the softmax: soft cap, bias, ALiBi,
// masks.
#pragma once

#include <cmath>

#include "kernels/online_softmax.hpp"
#include "qkv/mask.hpp"

namespace qkv::kernels {

// Queries and keys of a panel, counted from the beginning of their sequence.
struct panel_range {
  extent first_query;
  extent queries;
  extent first_key;
  extent keys;
};

// All rules cut down to one head and one sequence. Queries and keys are counted from the beginning
// of the sequence, which lies at query_base and key_base on the axes that mask and bias span.
struct score_rules {
  const attention_mask& mask;
  const view<const float, 4>& bias;
  float softcap;
  float alibi_slope;
  extent batch, head;
  extent query_base, key_base;
  extent key_len;       // those of the sequence that are valid
  extent query_offset;  // position of its first query among its keys

  key_range keys_for(extent query) const { return mask.keys_at(query + query_offset, key_len); }

  bool allowed(extent query, extent key) const {
    return !mask.allowed || mask.allowed(batch, head, query_base + query, key_base + key) != 0;
  }

  float bias_at(extent query, extent key) const {
    return bias ? bias(batch, head, query_base + query, key_base + key) : 0.0f;
  }

  bool visible(extent query, extent key) const {
    const key_range keys = keys_for(query);
    return key >= keys.begin && key < keys.end && allowed(query, key) &&
           bias_at(query, key) != minus_infinity;
  }

  // Whether mask or bias forbid every key of the panel to every query of it. Where they do not, an
  // early pair tells.
  bool forbid_all(const panel_range& part) const {
    if (!mask.allowed && !bias) return false;
    for (extent query = part.first_query; query < part.first_query + part.queries; ++query) {
      for (extent key = part.first_key; key < part.first_key + part.keys; ++key) {
        if (allowed(query, key) && bias_at(query, key) != minus_infinity) return false;
      }
    }
    return true;
  }

  // cap * tanh(score / cap): at most cap in size.
  void cap(float* scores, extent keys) const {
    if (softcap == 0.0f) return;
    const simd::batch limit = simd::broadcast(softcap);
    for (extent i = 0; i < keys * column_panel; i += simd::lanes) {
      simd::store(scores + i, limit * simd::tanh(simd::load(scores + i) / limit));
    }
  }

  // Bias and ALiBi. A bias of -Infinity forbids, so it replaces the score, which may be NaN.
  void add_bias(float* scores, const panel_range& part) const {
    if (!bias && alibi_slope == 0.0f) return;
    for (extent q = 0; q < part.queries; ++q) {
      const extent query = part.first_query + q;
      for (extent j = 0; j < part.keys; ++j) {
        const extent key = part.first_key + j;
        float& score = scores[j * column_panel + q];
        const float added = bias_at(query, key);
        score = added == minus_infinity ? added : score + added;
        if (alibi_slope != 0.0f) {
          score -= alibi_slope * static_cast<float>(std::abs(query + query_offset - key));
        }
      }
    }
  }

  // Scores of what is not visible become -Infinity, whatever they were: a forbidden NaN leaves no
  // trace.
  void hide(float* scores, const panel_range& part) const {
    for (extent q = 0; q < part.queries; ++q) {
      const extent query = part.first_query + q;
      const key_range range = keys_for(query);
      const extent begin = std::clamp<extent>(range.begin - part.first_key, 0, part.keys);
      const extent end = std::clamp<extent>(range.end - part.first_key, begin, part.keys);
      float* score = scores + q;
      for (extent j = 0; j < begin; ++j) score[j * column_panel] = minus_infinity;
      for (extent j = end; j < part.keys; ++j) score[j * column_panel] = minus_infinity;
      if (!mask.allowed) continue;
      for (extent j = begin; j < end; ++j) {
        if (!allowed(query, part.first_key + j)) score[j * column_panel] = minus_infinity;
      }
    }
  }
};

}  // namespace qkv::kernels
