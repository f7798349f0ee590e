// What the passes over one tile of queries share: the inputs of a head, scratch, panels of scores.
#pragma once

#include <cmath>

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

// Rows to write, likewise. Null: none.
struct written_rows {
  float* data = nullptr;
  extent stride = 0;
};

// One query head with the key head that it reads, of one sequence; or the queries of several heads
// that read the same one, as rows one after another.
struct attention_head {
  head_rows query, key, value;
  extent key_len, head_dim, value_dim;
  float scale;
  kernels::score_rules rules;
  float sink;  // -Infinity: none. Of the first head, where several lie side by side.
  attention_dropout dropout;
  std::uint64_t first_row;  // of query 0, counted over all batches and heads
  // Whether its position alone decides which keys a query sees, and how.
  bool plain;
  // Scores to keep, a row for each row of queries, since weights become of them.
  written_rows scores{};

  // The union of what rows [begin, end) see by their positions.
  key_range keys_of(extent begin, extent end) const;
};

// What some keys give to rows, [rows]: values weighed by exp(score - max), not yet divided by the
// sum.
struct attended_rows {
  float* out;  // [rows][columns], rows and columns padded to panels
  extent columns;
  kernels::softmax_rows statistics;

  // In memory of so many floats.
  static constexpr extent floats(extent rows, extent value_dim) {
    return kernels::padded(rows, kernels::column_panel) *
           (kernels::padded(value_dim, kernels::column_panel) + 2);
  }
  static attended_rows at(float* memory, extent rows, extent value_dim) {
    const extent count = kernels::padded(rows, kernels::column_panel);
    return {memory + 2 * count,
            kernels::padded(value_dim, kernels::column_panel),
            {memory, memory + count}};
  }

  attended_rows from(extent row) const {
    return {out + row * columns, columns, {statistics.max + row, statistics.sum + row}};
  }
};

// The tiles of one worker.
struct tile_scratch {
  float* query;   // column panels of query_tile queries
  float* key;     // row panels of key_tile keys; for a few rows, column panels
  float* value;   // column panels of key_tile values
  float* scores;  // [key_tile][column_panel]; for a few rows, [row_panel][key_tile]
  // attended_rows of query_tile rows, and of a panel's rows and one block of keys.
  float* out;
  float* max;
  float* sum;
  float* block_out;
  float* block_max;
  float* block_sum;

  static tile_scratch take(workspace& memory, extent head_dim, extent value_dim);
  static byte_count bytes(extent head_dim, extent value_dim);

  kernels::softmax_rows rows(extent first) const { return {max + first, sum + first}; }
  attended_rows attended(extent value_dim) const {
    return {out, kernels::padded(value_dim, kernels::column_panel), rows(0)};
  }
  attended_rows attended_block(extent value_dim) const {
    return {block_out, kernels::padded(value_dim, kernels::column_panel), {block_max, block_sum}};
  }
};

// Queries [first, first + count) of a head, count <= query_tile, packed when it is made.
class query_tile_pass {
 public:
  query_tile_pass(const attention_head& head, const tile_scratch& scratch, extent first,
                  extent count);

  // Runs on every key tile that some query of this tile sees, keys packed: tile(first_key, keys).
  template <typename Tile>
  void for_each_key_tile(const Tile& tile) const {
    for_each_key_tile({0, head_.key_len}, [&](extent first_key, extent keys) {
      pack_keys(first_key, keys);
      tile(first_key, keys);
    });
  }

  // Likewise within `limits`, and nothing packed. A tile that the rules hide wholly costs nothing.
  template <typename Tile>
  void for_each_key_tile(key_range limits, const Tile& tile) const {
    const key_range range = head_.keys_of(first_, first_ + count_);
    const extent end = std::min(range.end, limits.end);
    extent key = std::max(range.begin / key_tile * key_tile, limits.begin);
    for (; key < end; key += key_tile) {
      const extent keys = std::min(key_tile, limits.end - key);
      if (!head_.rules.forbid_all({first_, count_, key, keys})) tile(key, keys);
    }
  }

  void pack_keys(extent first_key, extent keys) const;

  // Runs panel by panel: body(part). Queries that see no key of the tile are left out, and so are
  // keys that none of the panel sees.
  template <typename Body>
  void for_each_part(extent first_key, extent keys, const Body& body) const {
    for (extent query = 0; query < count_; query += kernels::column_panel) {
      const kernels::panel_range part = visible_part(query, first_key, keys);
      if (part.keys != 0) body(part);
    }
  }

  // Likewise with scratch.scores filled, as far as `stage`.
  template <typename Body>
  void for_each_panel(extent first_key, extent keys, score_stage stage, const Body& body) const {
    for_each_part(first_key, keys, [&](const kernels::panel_range& part) {
      score(part, first_key, stage, scratch_.scores);
      body(part);
    });
  }

  // Scores of keys packed from first_key on, as far as `stage`: [key][column_panel].
  void score(const kernels::panel_range& part, extent first_key, score_stage stage,
             float* scores) const;

  // Products of queries and keys become scores.
  void scale_scores(float* scores, extent count) const;

  const attention_head& head() const { return head_; }
  const tile_scratch& scratch() const { return scratch_; }
  extent first() const { return first_; }
  extent count() const { return count_; }

 private:
  bool scales_queries() const;
  void scale(float* elements, extent count) const;
  kernels::panel_range visible_part(extent query, extent first_key, extent keys) const;

  const attention_head& head_;
  const tile_scratch& scratch_;
  extent first_;
  extent count_;
};

// to [count][column_panel] = rows, in row panels, times one column panel, both `depth` deep.
void multiply_panel(extent depth, const float* rows, extent count, const float* columns, float* to);

// out = weights^T . rows, or that added to it: weights [key][column_panel], rows in column panels
// `row_stride` deep.
void weigh_rows(const float* weights, extent keys, const float* rows, extent row_stride, float* out,
                extent columns, kernels::write mode);

// Sets dropped weights to 0.
void drop(const attention_head& head, const kernels::panel_range& part, float* weights);

struct weighed_row {
  const float* from;
  float* to;
};

// What is not finite was packed as 0: its share of a product of weights [key][column_panel] and
// rows is added apart, where it is visible. row_of(query, key) says which row goes where.
template <typename RowOf>
void add_non_finite(const attention_head& head, const kernels::panel_range& part,
                    const float* weights, extent columns, const RowOf& row_of) {
  for (extent j = 0; j < part.keys; ++j) {
    for (extent q = 0; q < part.queries; ++q) {
      const extent query = part.first_query + q, key = part.first_key + j;
      if (!head.rules.visible(query, key)) continue;
      const float weight = weights[j * kernels::column_panel + q];
      const weighed_row row = row_of(query, key);
      for (extent d = 0; d < columns; ++d) {
        if (!std::isfinite(row.from[d])) row.to[d] += weight * row.from[d];
      }
    }
  }
}

// The rows of a tile attend to all keys: block after block is merged, and no score matrix is held.
// Gives what lies in the scratch.
attended_rows attend_tile(const query_tile_pass& pass);

// The same in parts: clear, then merge what attend_block() made of block after block.
void attend_block(const query_tile_pass& pass, key_range keys, const attended_rows& to);
void clear_rows(const attended_rows& rows, extent count);
void merge_rows(const attended_rows& rows, const attended_rows& block, extent count);

// A row of head.scores becomes one of weights of all keys, counted from the sequence's first.
void kept_scores_to_weights(const attention_head& head, extent row,
                            kernels::softmax_rows statistics, key_range all);

// Writes the rows of the tile to `rows`, `stride` apart, as far as keys are visible; the rest stays
// as it is. Weights need the rows' final max and sum in the scratch.
void write_weights_tile(const query_tile_pass& pass, float* rows, extent stride,
                        kernels::write mode);
void write_scores_tile(const query_tile_pass& pass, score_stage stage, float* rows, extent stride);

}  // namespace qkv
