// What the passes of attention_backward() over one tile of queries share.
#pragma once

#include "attention_tile.hpp"
#include "kernels/gemm.hpp"
#include "kernels/softmax_gradient.hpp"

namespace qkv {

// The tiles of one worker.
struct backward_scratch {
  tile_scratch tiles;    // value: row panels of key_tile values
  float* d_out_rows;     // like the query: column panels of query_tile rows
  float* d_out_columns;  // column panels of the dims
  float* query_columns;
  float* key_columns;
  float* scores;     // panels [key][column_panel] of all keys: exponentials, weights
  float* gradients;  // likewise: d_weights, gradients of the scores
  // The same of one key tile: [panel of keys][query_tile][column_panel].
  float* turned_weights;
  float* turned_gradients;
  float* d_query;  // [query_tile][padded head_dim]
  float* product;  // [query_tile] each
  float* inverse;
  float* mean;

  static backward_scratch take(workspace& memory, extent key_len, extent head_dim,
                               extent value_dim);
  static byte_count bytes(extent key_len, extent head_dim, extent value_dim);
};

// The panels of queries of a tile that see a panel of keys: one after another, since position alone
// decides which are scored.
struct seen_by {
  extent begin = 0;
  extent end = 0;
};
inline constexpr extent key_panels = key_tile / kernels::column_panel;

// Keys whose panels are held at once.
struct held_keys {
  extent first;
  extent count;
};

// By what to differentiate: query . key, or the scores that the bias was added to.
enum class gradients_of { products, biased };

// Queries [first, first + count) of a head, count <= query_tile, on their way back.
class backward_tile_pass {
 public:
  backward_tile_pass(const attention_head& head, head_rows d_out, const backward_scratch& scratch,
                     extent first, extent count);

  // Holds all keys of the head: exponentials, d_weights, and the rows' statistics in scratch max,
  // inverse and mean.
  void gather();
  // Holds one tile of keys: the same from the statistics.
  void recall(extent first_key, extent keys);

  // What is held of these keys becomes weights and gradients.
  void differentiate(extent first_key, extent keys, gradients_of what);

  // The gradients of query . key times the keys, added to scratch d_query.
  void add_to_query(extent first_key, extent keys) const;
  // Their transpose times the queries, and that of the weights times d_out.
  void add_to_keys(extent first_key, extent keys, kernels::result_matrix d_key,
                   kernels::result_matrix d_value) const;

  const query_tile_pass& tile() const { return tile_; }
  const float* gradients(const kernels::panel_range& part) const {
    return scratch_.gradients + offset(part);
  }

 private:
  // Where a panel's part begins among the panels held.
  extent offset(const kernels::panel_range& part) const;
  kernels::gradient_rows rows(const kernels::panel_range& part) const;
  void score(extent first_key, extent keys) const;
  void turn_over(const kernels::panel_range& part, extent first_key,
                 seen_by (&seen)[key_panels]) const;

  const attention_head& head_;
  head_rows d_out_;
  const backward_scratch& scratch_;
  query_tile_pass tile_;
  held_keys held_{};
  bool non_finite_;  // d_out or query
};

}  // namespace qkv
