#include "attention_tile.hpp"

#include <cmath>

#include "kernels/dropout.hpp"
#include "kernels/gemm.hpp"
#include "kernels/row.hpp"

namespace qkv {

using kernels::column_panel;
using kernels::padded;
using kernels::row_panel;

namespace {
// The one list of what a worker's scratch holds: take() and bytes() both walk it.
template <typename Block>
void for_each_block(extent head_dim, extent value_dim, const Block& block) {
  const extent value_columns = padded(value_dim, column_panel);
  block(&tile_scratch::query, query_tile, head_dim);
  block(&tile_scratch::key, key_tile, head_dim);
  block(&tile_scratch::value, key_tile, value_columns);
  block(&tile_scratch::scores, key_tile, column_panel);
  block(&tile_scratch::out, query_tile, value_columns);
  block(&tile_scratch::max, query_tile, 1);
  block(&tile_scratch::sum, query_tile, 1);
  block(&tile_scratch::block_out, column_panel, value_columns);
  block(&tile_scratch::block_max, column_panel, 1);
  block(&tile_scratch::block_sum, column_panel, 1);
}
}  // namespace

tile_scratch tile_scratch::take(workspace& memory, extent head_dim, extent value_dim) {
  tile_scratch scratch{};
  for_each_block(head_dim, value_dim,
                 [&](float* tile_scratch::* member, extent rows, extent columns) {
                   scratch.*member = memory.floats(rows, columns);
                 });
  return scratch;
}

byte_count tile_scratch::bytes(extent head_dim, extent value_dim) {
  byte_count total = 0;
  for_each_block(head_dim, value_dim, [&](float* tile_scratch::*, extent rows, extent columns) {
    total += workspace::bytes_for(rows, columns);
  });
  return total;
}

query_tile_pass::query_tile_pass(const attention_head& head, const tile_scratch& scratch,
                                 extent first, extent count)
    : head_(head), scratch_(scratch), first_(first), count_(count) {
  kernels::pack_rows<column_panel>(head.query.data + first * head.query.stride, head.query.stride,
                                   count, head.head_dim, scratch.query);
  if (scales_queries()) scale(scratch.query, padded(count, column_panel) * head.head_dim);
}

// A power of two changes no digit, so scores come out the same whether it is a factor of them or of
// the far fewer elements of the queries.
bool query_tile_pass::scales_queries() const {
  int exponent;
  return std::abs(std::frexp(head_.scale, &exponent)) == 0.5f;
}

void query_tile_pass::scale(float* elements, extent count) const {
  const simd::batch factor = simd::broadcast(head_.scale);
  kernels::map_row(elements, count, elements,
                   [&](simd::batch element) { return element * factor; });
}

void query_tile_pass::scale_scores(float* scores, extent count) const {
  if (!scales_queries()) scale(scores, count);
}

key_range attention_head::keys_of(extent begin, extent end) const {
  key_range seen{key_len, 0};
  for (extent row = begin; row < end; ++row) {
    const key_range keys = rules.keys_for(row);
    if (keys.empty()) continue;
    seen = {std::min(seen.begin, keys.begin), std::max(seen.end, keys.end)};
  }
  return seen;
}

kernels::panel_range query_tile_pass::visible_part(extent query, extent first_key,
                                                   extent keys) const {
  const extent queries = std::min<extent>(column_panel, count_ - query);
  const key_range seen = head_.keys_of(first_ + query, first_ + query + queries);
  // Whole row panels from the left; what that adds is hidden again.
  const extent begin = std::clamp<extent>(seen.begin - first_key, 0, keys) / row_panel * row_panel;
  const extent end = std::clamp<extent>(seen.end - first_key, begin, keys);
  return {first_ + query, queries, first_key + begin, seen.empty() ? 0 : end - begin};
}

void query_tile_pass::pack_keys(extent first_key, extent keys) const {
  kernels::pack_rows<row_panel>(head_.key.data + first_key * head_.key.stride, head_.key.stride,
                                keys, head_.head_dim, scratch_.key);
}

void query_tile_pass::score(const kernels::panel_range& part, extent first_key, score_stage stage,
                            float* scores) const {
  const extent depth = head_.head_dim;
  multiply_panel(depth, scratch_.key + (part.first_key - first_key) * depth, part.keys,
                 scratch_.query + (part.first_query - first_) * depth, scores);
  scale_scores(scores, padded(part.keys, row_panel) * column_panel);
  if (stage == score_stage::scaled) return;
  head_.rules.cap(scores, part.keys);
  if (stage == score_stage::capped) return;
  head_.rules.add_bias(scores, part);
  head_.rules.add_alibi(scores, part);
  head_.rules.hide(scores, part);
}

void multiply_panel(extent depth, const float* rows, extent count, const float* columns,
                    float* to) {
  for (extent row = 0; row < count; row += row_panel) {
    kernels::gemm_kernel<row_panel, kernels::panel_vectors>(
        depth, rows + row * depth, row_panel, columns, column_panel, to + row * column_panel,
        column_panel, kernels::write::store);
  }
}

void weigh_rows(const float* weights, extent keys, const float* rows, extent row_stride, float* out,
                extent columns, kernels::write mode) {
  for (extent column = 0; column < columns; column += column_panel) {
    for (extent q = 0; q < column_panel; q += row_panel) {
      kernels::gemm_tile(row_panel, column_panel, keys, weights + q, column_panel,
                         rows + column * row_stride, {out + q * columns + column, columns}, mode);
    }
  }
}

void drop(const attention_head& head, const kernels::panel_range& part, float* weights) {
  const std::uint32_t bound = kernels::dropout_bound(head.dropout.probability);
  if (bound == 0) return;
  for (extent q = 0; q < part.queries; ++q) {
    const auto query = static_cast<std::uint64_t>(part.first_query + q);
    const kernels::dropout_row row(head.dropout.seed, head.first_row + query);
    for (extent j = 0; j < part.keys; ++j) {
      const extent key = head.rules.key_base + part.first_key + j;
      if (row.at(key) < bound) weights[j * column_panel + q] = 0.0f;
    }
  }
}

}  // namespace qkv
