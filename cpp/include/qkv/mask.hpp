// Which keys a query may see.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qkv/view.hpp"

namespace qkv {

// Query i sees key j only where j <= i + offset. Libraries mean two different things by "causal"
// where the lengths differ, so the alignment is always named.
struct causal_rule {
  bool enabled = false;
  extent offset = 0;

  // The first query is lined up with the first key.
  static causal_rule top_left() { return {true, 0}; }
  // The last query is lined up with the last key: with more queries than keys the first see
  // nothing.
  static causal_rule bottom_right(extent query_len, extent key_len) {
    return {true, key_len - query_len};
  }
  static causal_rule at(extent offset) { return {true, offset}; }
};

// Keys begin <= j < end.
struct key_range {
  extent begin;
  extent end;
};

// All rules at once: a key is visible where every rule allows it.
struct attention_mask {
  causal_rule causal;
  // (batch, num_heads, query_len, key_len), 0 forbids; strides of 0 broadcast. May be empty.
  view<const std::uint8_t, 4> allowed;

  // The keys that `query` may see by the rules that are ranges; `allowed` may forbid some of them.
  key_range keys_for(extent query, extent key_len) const {
    if (!causal.enabled) return {0, key_len};
    return {0, std::clamp<extent>(query + causal.offset + 1, 0, key_len)};
  }
};

}  // namespace qkv
