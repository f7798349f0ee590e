// The fused pass: scores, softmax and the product with the values, tile by tile.
#include "attention_tile.hpp"
#include "kernels/attend_row.hpp"

namespace qkv {

namespace {

using kernels::column_panel;

// out *= rescale, row by row, where this tile's maximum was a new one.
void rescale_rows(float* out, extent columns, const float* rescale) {
  for (extent q = 0; q < column_panel; ++q) {
    if (rescale[q] == 1.0f) continue;
    const simd::batch factor = simd::broadcast(rescale[q]);
    float* row = out + q * columns;
    for (extent d = 0; d < columns; d += simd::lanes) {
      simd::store(row + d, simd::load(row + d) * factor);
    }
  }
}

// The sink is one more logit of each row: it joins the sum and weighs no value. A row that sees no
// key stays one.
void add_sink(const query_tile_pass& pass, extent columns) {
  const float sink = pass.head().sink;
  if (sink == kernels::minus_infinity) return;
  const tile_scratch& scratch = pass.scratch();
  for (extent q = 0; q < pass.count(); ++q) {
    float& row_max = scratch.max[q];
    if (scratch.sum[q] == 0.0f) continue;
    const float largest = sink > row_max ? sink : row_max;
    const float shrink = std::exp(row_max - largest);
    scratch.sum[q] = scratch.sum[q] * shrink + std::exp(sink - largest);
    for (extent d = 0; d < columns; ++d) scratch.out[q * columns + d] *= shrink;
    row_max = largest;
  }
}

// A single query reads keys and values where they lie, unless a rule has to look at each pair.
bool is_plain_row(const query_tile_pass& pass) {
  const kernels::score_rules& rules = pass.head().rules;
  return pass.count() == 1 && !rules.mask.allowed && !rules.bias && rules.alibi_slope == 0.0f &&
         pass.head().dropout.probability == 0.0f;
}

void attend_row(const query_tile_pass& pass) {
  const attention_head& head = pass.head();
  const tile_scratch& scratch = pass.scratch();
  const key_range range = head.rules.keys_for(pass.first());
  // The same tiles as for many queries: where a tile ends, a sum ends.
  for (extent tile = range.begin / key_tile * key_tile; tile < range.end; tile += key_tile) {
    const extent begin = std::max(range.begin, tile);
    const extent keys = std::min(range.end, tile + key_tile) - begin;
    const extent columns = kernels::padded(head.value_dim, column_panel);
    kernels::score_row(head.head_dim, head.key.data + begin * head.key.stride, head.key.stride,
                       keys, scratch.query, scratch.scores);
    pass.scale_scores(scratch.scores, kernels::padded(keys, simd::lanes));
    head.rules.cap(scratch.scores, kernels::panels(keys, column_panel));
    kernels::online_softmax_row(scratch.scores, keys, scratch.rows(0));
    if (*scratch.rescale != 1.0f) {
      kernels::map_row(scratch.out, columns, scratch.out, [&](simd::batch value) {
        return value * simd::broadcast(*scratch.rescale);
      });
    }
    kernels::weigh_values(scratch.scores, keys, head.value.data + begin * head.value.stride,
                          head.value.stride, head.value_dim, scratch.out);
  }
}

void attend_panels(const query_tile_pass& pass) {
  const attention_head& head = pass.head();
  const tile_scratch& scratch = pass.scratch();
  const extent columns = kernels::padded(head.value_dim, column_panel);
  pass.for_each_key_tile([&](extent first_key, extent keys) {
    kernels::pack_columns(head.value.data + first_key * head.value.stride, head.value.stride, keys,
                          head.value_dim, scratch.value);
    const bool non_finite = kernels::clear_non_finite(scratch.value, keys * columns);
    pass.for_each_panel(
        first_key, keys, score_stage::biased, [&](const kernels::panel_range& part) {
          const extent row = part.first_query - pass.first();
          const kernels::softmax_rows rows = scratch.rows(row);
          float* out = scratch.out + row * columns;
          kernels::online_softmax(scratch.scores, part.keys, rows);
          rescale_rows(out, columns, rows.rescale);
          drop(head, part, scratch.scores);
          // Panels of values are `keys` deep; this part begins at one of their rows.
          const float* values = scratch.value + (part.first_key - first_key) * column_panel;
          add_weighted_rows(scratch.scores, part.keys, values, keys, out, columns);
          if (!non_finite) return;
          add_non_finite(head, part, scratch.scores, head.value_dim, [&](extent query, extent key) {
            return weighed_row{head.value.data + key * head.value.stride,
                               scratch.out + (query - pass.first()) * columns};
          });
        });
  });
}

}  // namespace

void attention_fused_tile(const query_tile_pass& pass) {
  const tile_scratch& scratch = pass.scratch();
  const extent columns = kernels::padded(pass.head().value_dim, column_panel);
  const extent queries = kernels::padded(pass.count(), column_panel);
  std::fill_n(scratch.out, queries * columns, 0.0f);
  std::fill_n(scratch.max, queries, kernels::minus_infinity);
  std::fill_n(scratch.sum, queries, 0.0f);
  if (is_plain_row(pass)) {
    attend_row(pass);
  } else {
    attend_panels(pass);
  }
  add_sink(pass, columns);
}

}  // namespace qkv
