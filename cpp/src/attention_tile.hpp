// What the passes over one tile of queries share: the inputs of a head, scratch, panels of scores.
#pragma once

#include "kernels/mask_tile.hpp"
#include "kernels/pack.hpp"
#include "kernels/score_tile.hpp"
#include "qkv/attention.hpp"
#include "tile_plan.hpp"

namespace qkv {

// Rows `stride` apart.
struct head_rows {
  const float* data;
  extent stride;
};

// One query head with the key head that it reads.
struct attention_head {
  head_rows query, key, value;
  extent query_len, key_len, head_dim, value_dim;
  float scale;
  kernels::head_mask mask;
};

// The tiles of one worker.
struct tile_scratch {
  float* query;   // column panels of query_tile queries
  float* key;     // row panels of key_tile keys
  float* value;   // column panels of key_tile values
  float* scores;  // [key_tile][column_panel]
  float* out;     // [query_tile][padded value_dim], not yet divided by the sum
  float* max;     // [query_tile] each
  float* sum;
  float* rescale;

  static tile_scratch take(workspace& memory, extent head_dim, extent value_dim);
  static byte_count bytes(extent head_dim, extent value_dim);

  kernels::softmax_rows rows(extent first) const {
    return {max + first, sum + first, rescale + first};
  }
};

// Queries [first, first + count) of a head, count <= query_tile.
class query_tile_pass {
 public:
  query_tile_pass(const attention_head& head, const tile_scratch& scratch, extent first,
                  extent count)
      : head_(head), scratch_(scratch), first_(first), count_(count) {}

  void pack_queries() const;

  // Runs on every key tile that some query of this tile sees, keys packed: tile(first_key, keys).
  template <typename Tile>
  void for_each_key_tile(const Tile& tile) const {
    const key_range range = keys_of(0, count_);
    for (extent key = range.begin / key_tile * key_tile; key < range.end; key += key_tile) {
      const extent keys = std::min(key_tile, head_.key_len - key);
      kernels::pack_rows<kernels::row_panel>(head_.key.data + key * head_.key.stride,
                                             head_.key.stride, keys, head_.head_dim, scratch_.key);
      tile(key, keys);
    }
  }

  // A panel of queries and the keys of the packed tile that some of them see.
  struct panel {
    extent query;    // the first, counted in the tile
    extent queries;  // column_panel, or fewer in the last panel
    extent key;      // the first, counted in the head
    extent keys;
  };

  // Runs panel by panel with scratch.scores filled: body(panel).
  template <typename Body>
  void for_each_panel(extent first_key, extent keys, const Body& body) const {
    for (extent query = 0; query < count_; query += kernels::column_panel) {
      const panel part = visible_part(query, first_key, keys);
      if (part.keys == 0) continue;
      score(part, first_key);
      body(part);
    }
  }

  const attention_head& head() const { return head_; }
  const tile_scratch& scratch() const { return scratch_; }
  extent first() const { return first_; }
  extent count() const { return count_; }

 private:
  // The union of what queries [begin, end) of the tile see; ranges move with the query, never back.
  key_range keys_of(extent begin, extent end) const {
    return {head_.mask.keys_for(first_ + begin).begin, head_.mask.keys_for(first_ + end - 1).end};
  }
  panel visible_part(extent query, extent first_key, extent keys) const;
  void score(const panel& part, extent first_key) const;

  const attention_head& head_;
  const tile_scratch& scratch_;
  extent first_;
  extent count_;
};

// Fills scratch out, max and sum for the tile; no score matrix is held.
void attention_fused_tile(const query_tile_pass& pass);

// Writes rows [first, first + count) of `weights` (query_len, key_len), rows `stride` apart, from
// the max and sum that attention_fused_tile() left.
void attention_weights_tile(const query_tile_pass& pass, float* weights, extent stride);

// Writes the same rows of `scores`.
void attention_scores_tile(const query_tile_pass& pass, float* scores, extent stride);

}  // namespace qkv
