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
  extent query_len;     // more rows than these are the same queries of the next heads
  extent key_len;       // those of the sequence that are valid
  extent query_offset;  // position of its first query among its keys

  key_range keys_for(extent query) const {
    const extent own = query < query_len ? query : query % query_len;
    return mask.keys_at(own + query_offset, key_len);
  }

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

  // A bias of -Infinity forbids, so it replaces the score, which may be NaN.
  void add_bias(float* scores, const panel_range& part) const {
    if (!bias) return;
    const extent key_stride = bias.strides[3];
    const float* rows[column_panel];
    for (extent q = 0; q < column_panel; ++q) {
      // Lanes without a query take another's bias: nobody reads them.
      const extent query = query_base + part.first_query + std::min(q, part.queries - 1);
      rows[q] = bias.at(batch, head, query, key_base + part.first_key);
    }
    for (extent q = 0; q < column_panel; q += simd::lanes) {
      extent j = 0;
      for (; key_stride == 1 && j + simd::lanes <= part.keys; j += simd::lanes) {
        simd::batch block[simd::lanes];
        for (int i = 0; i < simd::lanes; ++i) block[i] = simd::load(rows[q + i] + j);
        simd::transpose(block);
        for (int i = 0; i < simd::lanes; ++i) {
          add_to(scores + (j + i) * column_panel + q, block[i]);
        }
      }
      for (; j < part.keys; ++j) {
        float lane[simd::lanes];
        for (int i = 0; i < simd::lanes; ++i) lane[i] = rows[q + i][j * key_stride];
        add_to(scores + j * column_panel + q, simd::load(lane));
      }
    }
  }

  void add_alibi(float* scores, const panel_range& part) const {
    if (alibi_slope == 0.0f) return;
    const simd::batch slope = simd::broadcast(alibi_slope);
    for (extent q = 0; q < column_panel; q += simd::lanes) {
      const simd::int_batch position =
          simd::counting(static_cast<std::int32_t>(part.first_query + q + query_offset));
      for (extent j = 0; j < part.keys; ++j) {
        const auto key = static_cast<std::int32_t>(part.first_key + j);
        const simd::batch distance = simd::to_float(xsimd::abs(position - simd::int_batch(key)));
        float* score = scores + j * column_panel + q;
        simd::store(score, simd::load(score) - slope * distance);
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

 private:
  static void add_to(float* score, simd::batch added) {
    const simd::batch sum = simd::load(score) + added;
    simd::store(score, xsimd::select(added == simd::broadcast(minus_infinity), added, sum));
  }
};

}  // namespace qkv::kernels
