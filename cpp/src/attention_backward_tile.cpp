#include "attention_backward_tile.hpp"

#include "kernels/row.hpp"

namespace qkv {

using kernels::column_panel;
using kernels::padded;
using kernels::panel_range;
using kernels::row_panel;

namespace {

// The one list of what a worker's scratch holds besides the tiles of the forward pass.
template <typename Block>
void for_each_block(extent key_len, extent head_dim, extent value_dim, const Block& block) {
  const extent head_columns = padded(head_dim, column_panel);
  const extent value_columns = padded(value_dim, column_panel);
  const extent held = padded(key_len, key_tile);
  block(&backward_scratch::d_out_rows, query_tile, value_dim);
  block(&backward_scratch::d_out_columns, query_tile, value_columns);
  block(&backward_scratch::query_columns, query_tile, head_columns);
  block(&backward_scratch::key_columns, key_tile, head_columns);
  block(&backward_scratch::scores, query_tile, held);
  block(&backward_scratch::gradients, query_tile, held);
  block(&backward_scratch::turned_weights, query_tile, key_tile);
  block(&backward_scratch::turned_gradients, query_tile, key_tile);
  block(&backward_scratch::d_query, query_tile, head_columns);
  block(&backward_scratch::product, query_tile, 1);
  block(&backward_scratch::inverse, query_tile, 1);
  block(&backward_scratch::mean, query_tile, 1);
}

void divide(float* row, extent count, float divisor) {
  const simd::batch by = simd::broadcast(divisor);
  kernels::map_row(row, count, row, [&](simd::batch element) { return element / by; });
}

// to (keys, columns) += a turned tile times rows of queries in column panels `count` deep.
void add_product(const float* turned, const seen_by* seen, extent keys, const float* rows,
                 extent count, kernels::result_matrix to, extent columns) {
  for (extent key = 0; key < keys; key += row_panel) {
    const seen_by panels = seen[key / column_panel];
    const extent begin = panels.begin * column_panel;
    const extent depth = std::min(panels.end * column_panel, count) - begin;
    if (depth <= 0) continue;
    const float* left =
        turned + (key / column_panel * query_tile + begin) * column_panel + key % column_panel;
    for (extent column = 0; column < columns; column += column_panel) {
      kernels::gemm_tile(
          std::min<extent>(row_panel, keys - key), std::min<extent>(column_panel, columns - column),
          depth, left, column_panel, rows + column * count + begin * column_panel,
          {to.data + key * to.row_stride + column, to.row_stride}, kernels::write::add);
    }
  }
}

}  // namespace

backward_scratch backward_scratch::take(workspace& memory, extent key_len, extent head_dim,
                                        extent value_dim) {
  backward_scratch scratch{};
  scratch.tiles = tile_scratch::take(memory, head_dim, value_dim);
  for_each_block(key_len, head_dim, value_dim,
                 [&](float* backward_scratch::* member, extent rows, extent columns) {
                   scratch.*member = memory.floats(rows, columns);
                 });
  return scratch;
}

byte_count backward_scratch::bytes(extent key_len, extent head_dim, extent value_dim) {
  byte_count total = tile_scratch::bytes(head_dim, value_dim);
  for_each_block(key_len, head_dim, value_dim,
                 [&](float* backward_scratch::*, extent rows, extent columns) {
                   total += workspace::bytes_for(rows, columns);
                 });
  return total;
}

backward_tile_pass::backward_tile_pass(const attention_head& head, head_rows d_out,
                                       const backward_scratch& scratch, extent first, extent count)
    : head_(head), d_out_(d_out), scratch_(scratch), tile_(head, scratch.tiles, first, count) {
  const extent head_columns = padded(head.head_dim, column_panel);
  const extent value_columns = padded(head.value_dim, column_panel);
  const float* d_rows = d_out.data + first * d_out.stride;
  kernels::pack_rows<column_panel>(d_rows, d_out.stride, count, head.value_dim, scratch.d_out_rows);
  kernels::pack_columns(d_rows, d_out.stride, count, head.value_dim, scratch.d_out_columns);
  kernels::pack_columns(head.query.data + first * head.query.stride, head.query.stride, count,
                        head.head_dim, scratch.query_columns);
  if (head.dropout.probability > 0.0f) {
    const float kept = 1.0f - head.dropout.probability;
    divide(scratch.d_out_rows, padded(count, column_panel) * head.value_dim, kept);
    divide(scratch.d_out_columns, count * value_columns, kept);
  }
  non_finite_ = kernels::clear_non_finite(scratch.d_out_columns, count * value_columns);
  if (kernels::clear_non_finite(scratch.query_columns, count * head_columns)) non_finite_ = true;
}

extent backward_tile_pass::offset(const panel_range& part) const {
  const extent panel = (part.first_query - tile_.first()) / column_panel;
  return (panel * held_.count + part.first_key - held_.first) * column_panel;
}

kernels::gradient_rows backward_tile_pass::rows(const panel_range& part) const {
  const extent row = part.first_query - tile_.first();
  return {scratch_.tiles.max + row, scratch_.tiles.sum + row, scratch_.product + row};
}

// Scores and d_weights of one tile of keys.
void backward_tile_pass::score(extent first_key, extent keys) const {
  const float* values = scratch_.tiles.value;
  tile_.pack_keys(first_key, keys);
  kernels::pack_rows<row_panel>(head_.value.data + first_key * head_.value.stride,
                                head_.value.stride, keys, head_.value_dim, scratch_.tiles.value);
  tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
    float* d_weights = scratch_.gradients + offset(part);
    tile_.score(part, first_key, score_stage::biased, scratch_.scores + offset(part));
    multiply_panel(
        head_.value_dim, values + (part.first_key - first_key) * head_.value_dim, part.keys,
        scratch_.d_out_rows + (part.first_query - tile_.first()) * head_.value_dim, d_weights);
    drop(head_, part, d_weights);
  });
}

void backward_tile_pass::gather() {
  const extent count = padded(tile_.count(), column_panel);
  const tile_scratch& tiles = scratch_.tiles;
  const key_range all{0, head_.key_len};
  held_ = {0, padded(head_.key_len, key_tile)};
  // The sink is one more score of each row, without a value.
  std::fill_n(tiles.max, count, head_.sink);
  std::fill_n(tiles.sum, count, 0.0f);
  std::fill_n(scratch_.product, count, 0.0f);
  tile_.for_each_key_tile(all, [&](extent first_key, extent keys) {
    score(first_key, keys);
    tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
      kernels::raise_maxima(scratch_.scores + offset(part), part.keys, rows(part).max);
    });
  });
  tile_.for_each_key_tile(all, [&](extent first_key, extent keys) {
    tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
      kernels::exponentials(scratch_.scores + offset(part), scratch_.gradients + offset(part),
                            part.keys, rows(part));
    });
  });
  for (extent q = 0; q < count; ++q) {
    float sum = tiles.sum[q];
    if (head_.sink != kernels::minus_infinity) sum += std::exp(head_.sink - tiles.max[q]);
    scratch_.inverse[q] = sum == 0.0f ? 0.0f : 1.0f / sum;
    scratch_.mean[q] = sum == 0.0f ? 0.0f : scratch_.product[q] / sum;
  }
}

void backward_tile_pass::recall(extent first_key, extent keys) {
  held_ = {first_key, key_tile};
  score(first_key, keys);
  tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
    // The sums that are made here too are known already.
    kernels::exponentials(scratch_.scores + offset(part), scratch_.gradients + offset(part),
                          part.keys, rows(part));
  });
}

void backward_tile_pass::differentiate(extent first_key, extent keys, gradients_of what) {
  const bool products = what == gradients_of::products;
  const float cap = products ? head_.rules.softcap : 0.0f;
  if (cap != 0.0f) tile_.pack_keys(first_key, keys);
  tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
    const extent row = part.first_query - tile_.first();
    float* weights = scratch_.scores + offset(part);
    float* gradients = scratch_.gradients + offset(part);
    kernels::score_gradients(weights, gradients, part.keys,
                             {scratch_.inverse + row, scratch_.mean + row},
                             products ? head_.scale : 1.0f);
    if (cap == 0.0f) return;
    // Made again rather than held: few ask for a cap.
    tile_.score(part, first_key, score_stage::scaled, scratch_.tiles.scores);
    kernels::cap_gradients(gradients, scratch_.tiles.scores, part.keys, cap);
  });
}

void backward_tile_pass::add_to_query(extent first_key, extent keys) const {
  const extent columns = padded(head_.head_dim, column_panel);
  kernels::pack_columns(head_.key.data + first_key * head_.key.stride, head_.key.stride, keys,
                        head_.head_dim, scratch_.key_columns);
  const bool non_finite = kernels::clear_non_finite(scratch_.key_columns, keys * columns);
  tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
    float* d_query = scratch_.d_query + (part.first_query - tile_.first()) * columns;
    weigh_rows(gradients(part), part.keys,
               scratch_.key_columns + (part.first_key - first_key) * column_panel, keys, d_query,
               columns, kernels::write::add);
    if (!non_finite) return;
    add_non_finite(head_, part, gradients(part), head_.head_dim, [&](extent query, extent key) {
      return weighed_row{head_.key.data + key * head_.key.stride,
                         d_query + (query - part.first_query) * columns};
    });
  });
}

// Joins a part's weights and gradients to the turned tiles. Panels of keys are turned whole: what
// the part lacks of them is 0.
void backward_tile_pass::turn_over(const panel_range& part, extent first_key,
                                   seen_by (&seen)[key_panels]) const {
  const extent begin = (part.first_key - first_key) / column_panel;
  const extent gap = part.first_key - first_key - begin * column_panel;
  const extent count = kernels::panels(gap + part.keys, column_panel);
  const extent panel = (part.first_query - tile_.first()) / column_panel;
  const auto turn = [&](float* held, float* to) {
    float* whole = held - gap * column_panel;
    std::fill(whole, held, 0.0f);
    std::fill(held + part.keys * column_panel, whole + count * column_panel * column_panel, 0.0f);
    kernels::pack_rows<column_panel>(
        whole, column_panel, count * column_panel, column_panel,
        to + (begin * query_tile + panel * column_panel) * column_panel, query_tile * column_panel);
  };
  turn(scratch_.scores + offset(part), scratch_.turned_weights);
  turn(scratch_.gradients + offset(part), scratch_.turned_gradients);
  for (extent k = begin; k < begin + count; ++k) {
    if (seen[k].end == 0) seen[k].begin = panel;
    seen[k].end = panel + 1;
  }
}

void backward_tile_pass::add_to_keys(extent first_key, extent keys, kernels::result_matrix d_key,
                                     kernels::result_matrix d_value) const {
  seen_by seen[key_panels];
  tile_.for_each_part(first_key, keys, [&](const panel_range& part) {
    const float* weights = scratch_.scores + offset(part);
    drop(head_, part, scratch_.scores + offset(part));
    turn_over(part, first_key, seen);
    if (!non_finite_) return;
    add_non_finite(head_, part, gradients(part), head_.head_dim, [&](extent query, extent key) {
      return weighed_row{head_.query.data + query * head_.query.stride,
                         d_key.data + key * d_key.row_stride};
    });
    add_non_finite(head_, part, weights, head_.value_dim, [&](extent query, extent key) {
      return weighed_row{d_out_.data + query * d_out_.stride,
                         d_value.data + key * d_value.row_stride};
    });
  });
  const auto rows = [&](kernels::result_matrix of) {
    return kernels::result_matrix{of.data + first_key * of.row_stride, of.row_stride};
  };
  const extent count = tile_.count();
  add_product(scratch_.turned_weights, seen, keys, scratch_.d_out_columns, count, rows(d_value),
              head_.value_dim);
  add_product(scratch_.turned_gradients, seen, keys, scratch_.query_columns, count, rows(d_key),
              head_.head_dim);
}

}  // namespace qkv
