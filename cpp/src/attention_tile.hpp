// What the passes over one tile of queries share: the inputs of a head, scratch, panels of scores.
#pragma once

#include "kernels/pack.hpp"
#include "kernels/score_rules.hpp"
#include "qkv/attention.hpp"
#include "tile_plan.hpp"

namespace qkv {

// Rows `stride` apart.
struct head_rows {
  const float* data;
  extent stride;
};

// One query head with the key head that it reads, of one sequence.
struct attention_head {
  head_rows query, key, value;
  extent query_len, key_len, head_dim, value_dim;
  float scale;
  kernels::score_rules rules;
  float sink;  // -Infinity: none
  attention_dropout dropout;
  std::uint64_t first_row;  // of query 0, counted over all batches and heads
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

// Queries [first, first + count) of a head, count <= query_tile, packed when it is made.
class query_tile_pass {
 public:
  query_tile_pass(const attention_head& head, const tile_scratch& scratch, extent first,
                  extent count);

  // Runs on every key tile that some query of this tile sees, keys packed: tile(first_key, keys).
  // A tile that the rules hide wholly costs nothing.
  template <typename Tile>
  void for_each_key_tile(const Tile& tile) const {
    const key_range range = keys_of(first_, first_ + count_);
    for (extent key = range.begin / key_tile * key_tile; key < range.end; key += key_tile) {
      const extent keys = std::min(key_tile, head_.key_len - key);
      if (head_.rules.forbid_all({first_, count_, key, keys})) continue;
      kernels::pack_rows<kernels::row_panel>(head_.key.data + key * head_.key.stride,
                                             head_.key.stride, keys, head_.head_dim, scratch_.key);
      tile(key, keys);
    }
  }

  // Runs panel by panel with scratch.scores filled, as far as `stage`: body(part). Queries that see
  // no key of the tile are left out, and so are keys that none of the panel sees.
  template <typename Body>
  void for_each_panel(extent first_key, extent keys, score_stage stage, const Body& body) const {
    for (extent query = 0; query < count_; query += kernels::column_panel) {
      const kernels::panel_range part = visible_part(query, first_key, keys);
      if (part.keys == 0) continue;
      score(part, first_key, stage);
      body(part);
    }
  }

  // The products of queries and keys in scratch.scores become scores.
  void scale_scores(extent count) const;

  const attention_head& head() const { return head_; }
  const tile_scratch& scratch() const { return scratch_; }
  extent first() const { return first_; }
  extent count() const { return count_; }

 private:
  bool scales_queries() const;
  void scale(float* elements, extent count) const;
  // The union of what queries [begin, end) of the head see.
  key_range keys_of(extent begin, extent end) const;
  kernels::panel_range visible_part(extent query, extent first_key, extent keys) const;
  void score(const kernels::panel_range& part, extent first_key, score_stage stage) const;

  const attention_head& head_;
  const tile_scratch& scratch_;
  extent first_;
  extent count_;
};

// Fills scratch out, max and sum for the tile; no score matrix is held.
void attention_fused_tile(const query_tile_pass& pass);

// Writes the rows of the tile to `rows`, `stride` apart, as far as keys are visible; the rest stays
// as it is. Weights need the rows' final max and sum in the scratch.
void write_weights_tile(const query_tile_pass& pass, float* rows, extent stride,
                        kernels::write mode);
void write_scores_tile(const query_tile_pass& pass, score_stage stage, float* rows, extent stride);

}  // namespace qkv
