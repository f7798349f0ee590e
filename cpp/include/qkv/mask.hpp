// Which keys a query may see, by position and by a boolean mask.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "qkv/view.hpp"

namespace qkv {

// Keys begin <= j < end.
struct key_range {
  extent begin;
  extent end;

  bool empty() const { return begin >= end; }
};

// How many keys a query may see to one side of its own position.
inline constexpr extent unlimited = std::numeric_limits<extent>::max();

// Everything that hides keys; a key is visible where every rule allows it.
//
// Causal and window count from a query's position among the keys, which is its index plus an
// offset. Libraries mean two different things by "causal" where the lengths differ: offset 0 lines
// the first query up with the first key ("top-left"), key_len - query_len the last with the last
// ("bottom-right").
struct attention_mask {
  bool causal = false;
  extent window_left = unlimited;   // keys before the query's own position
  extent window_right = unlimited;  // keys after it
  // One offset for each batch (or for each packed sequence), or null: query_offset for all.
  const std::int32_t* query_offsets = nullptr;
  extent query_offset = 0;
  // Valid keys of each batch, or null: all.
  const std::int32_t* key_lengths = nullptr;
  // (batch, num_heads, query_len, key_len), 0 forbids; strides of 0 broadcast. May be empty.
  view<const std::uint8_t, 4> allowed;

  // The position among the keys of query 0 of a batch or packed sequence.
  extent offset_of(extent sequence) const {
    return query_offsets != nullptr ? query_offsets[sequence] : query_offset;
  }

  // The keys, of key_len, that a query at `position` may see by causal and window.
  key_range keys_at(extent position, extent key_len) const {
    const extent right = causal ? std::min<extent>(window_right, 0) : window_right;
    return {window_left == unlimited ? 0 : key_at(position, -std::int64_t{window_left}, key_len),
            right == unlimited ? key_len : key_at(position, std::int64_t{right} + 1, key_len)};
  }

 private:
  // In 64 bits, since position and window may each take nearly all that `extent` holds.
  static extent key_at(extent position, std::int64_t distance, extent key_len) {
    return static_cast<extent>(std::clamp<std::int64_t>(position + distance, 0, key_len));
  }
};

}  // namespace qkv
