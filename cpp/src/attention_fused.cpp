// The fused pass: scores, softmax and the product with the values, block of keys by block.
#include "attention_tile.hpp"
#include "kernels/attend_row.hpp"

namespace qkv {

namespace {

using kernels::column_panel;
using kernels::panel_range;
using kernels::row_panel;

// A panel of rows takes as long for one row as for column_panel of them, and packs keys and values.
// So few rows do without, where they see the same keys of a block; and these where they do not.
constexpr extent few_alike = 8, few_others = 5;

static_assert(key_tile == kernels::weight_stride);

// Panels are also for what has to look at each pair.
bool are_few(const query_tile_pass& pass) { return pass.count() <= few_alike && pass.head().plain; }

key_range seen_of(const query_tile_pass& pass, extent row, key_range block) {
  const key_range seen = pass.head().rules.keys_for(pass.first() + row);
  return {std::max(seen.begin, block.begin), std::min(seen.end, block.end)};
}

bool are_alike(const query_tile_pass& pass, key_range block) {
  const key_range first = seen_of(pass, 0, block);
  for (extent row = 1; row < pass.count(); ++row) {
    const key_range seen = seen_of(pass, row, block);
    if (seen.begin != first.begin || seen.end != first.end) return false;
  }
  return true;
}

// Where scores are kept, those of keys that no panel looks at are hidden.
void hide_kept(const query_tile_pass& pass, key_range keys) {
  const attention_head& head = pass.head();
  if (head.scores.data == nullptr || (!head.rules.mask.allowed && !head.rules.bias)) return;
  for (extent row = pass.first(); row < pass.first() + pass.count(); ++row) {
    float* scores = head.scores.data + row * head.scores.stride;
    std::fill(scores + keys.begin, scores + keys.end, kernels::minus_infinity);
  }
}

// Products of one row and `count` keys become weights; returns the largest score.
[[gnu::noinline]] float weights_of_row(const query_tile_pass& pass, extent row, key_range keys,
                                       float* scores) {
  const attention_head& head = pass.head();
  const extent count = keys.end - keys.begin;
  pass.scale_scores(scores, kernels::padded(count, simd::lanes));
  head.rules.cap(scores, kernels::panels(count, column_panel));
  if (head.scores.data != nullptr) {
    const extent kept = (pass.first() + row) * head.scores.stride + keys.begin;
    std::copy_n(scores, count, head.scores.data + kept);
  }
  return kernels::block_exponentials(scores, count);
}

// Products [row][key_tile] of Rows rows from `row` on become weights, and weigh the values.
template <int Rows>
void weigh(const query_tile_pass& pass, extent row, key_range keys, const attended_rows& to) {
  const head_rows& value = pass.head().value;
  float* scores = pass.scratch().scores;
  for (extent r = 0; r < Rows; ++r) {
    to.statistics.max[r] = weights_of_row(pass, row + r, keys, scores + r * key_tile);
  }
  kernels::weigh_values<Rows>(scores, keys.end - keys.begin, value.data + keys.begin * value.stride,
                              value.stride, pass.head().value_dim, {to.out, to.columns},
                              to.statistics.sum);
}

// Reads the keys where they lie.
void attend_row(const query_tile_pass& pass, extent row, key_range keys, const attended_rows& to) {
  const attention_head& head = pass.head();
  if (keys.empty()) return;
  kernels::score_row(head.head_dim, head.key.data + keys.begin * head.key.stride, head.key.stride,
                     keys.end - keys.begin, pass.scratch().query + row, pass.scratch().scores);
  weigh<1>(pass, row, keys, to.from(row));
}

// Rows that see the same keys share what it takes to turn them over, four by four.
void attend_alike(const query_tile_pass& pass, key_range keys, const attended_rows& to) {
  if (keys.empty()) return;
  const attention_head& head = pass.head();
  const extent count = keys.end - keys.begin;
  extent row = 0;
  if (pass.count() >= row_panel) {
    kernels::pack_rows<column_panel>(head.key.data + keys.begin * head.key.stride, head.key.stride,
                                     count, head.head_dim, pass.scratch().key);
  }
  for (; row + row_panel <= pass.count(); row += row_panel) {
    for (extent j = 0; j < count; j += column_panel) {
      kernels::gemm_kernel<row_panel, kernels::panel_vectors>(
          head.head_dim, pass.scratch().query + row, column_panel,
          pass.scratch().key + j * head.head_dim, column_panel, pass.scratch().scores + j, key_tile,
          kernels::write::store);
    }
    weigh<row_panel>(pass, row, keys, to.from(row));
  }
  for (; row < pass.count(); ++row) attend_row(pass, row, keys, to);
}

// Each panel attends to block after block: into its rows of `block`, or, where there are `rows` to
// merge with, all into the same ones.
[[gnu::noinline]] void attend_panels(const query_tile_pass& pass, key_range limits,
                                     const attended_rows& block, const attended_rows* rows) {
  const attention_head& head = pass.head();
  const tile_scratch& scratch = pass.scratch();
  const extent columns = block.columns;
  hide_kept(pass, limits);
  pass.for_each_key_tile(limits, [&](extent first_key, extent keys) {
    pass.pack_keys(first_key, keys);
    kernels::pack_columns(head.value.data + first_key * head.value.stride, head.value.stride, keys,
                          head.value_dim, scratch.value);
    const bool non_finite = kernels::clear_non_finite(scratch.value, keys * columns);
    pass.for_each_panel(first_key, keys, score_stage::biased, [&](const panel_range& part) {
      const extent row = part.first_query - pass.first();
      const attended_rows to = rows != nullptr ? block : block.from(row);
      if (head.scores.data != nullptr) {
        kernels::unpack_panel(
            scratch.scores, part.keys, part.queries,
            head.scores.data + part.first_query * head.scores.stride + part.first_key,
            head.scores.stride, kernels::write::store);
      }
      kernels::block_softmax(scratch.scores, part.keys, to.statistics);
      drop(head, part, scratch.scores);
      // Panels of values are `keys` deep; this part begins at one of their rows.
      weigh_rows(scratch.scores, part.keys,
                 scratch.value + (part.first_key - first_key) * column_panel, keys, to.out, columns,
                 kernels::write::store);
      if (non_finite) {
        add_non_finite(head, part, scratch.scores, head.value_dim, [&](extent query, extent key) {
          return weighed_row{head.value.data + key * head.value.stride,
                             to.out + (query - part.first_query) * columns};
        });
      }
      if (rows != nullptr) merge_rows(rows->from(row), to, part.queries);
    });
  });
}

// Rows that see nothing of a block.
void blank(const attended_rows& rows, extent count) {
  std::fill_n(rows.statistics.max, kernels::padded(count, column_panel), kernels::minus_infinity);
  std::fill_n(rows.statistics.sum, kernels::padded(count, column_panel), 0.0f);
}

}  // namespace

void clear_rows(const attended_rows& rows, extent count) {
  blank(rows, count);
  std::fill_n(rows.out, count * rows.columns, 0.0f);
}

void attend_block(const query_tile_pass& pass, key_range keys, const attended_rows& to) {
  blank(to, pass.count());
  if (are_few(pass) && are_alike(pass, keys)) {
    attend_alike(pass, seen_of(pass, 0, keys), to);
  } else if (are_few(pass) && pass.count() <= few_others) {
    for (extent row = 0; row < pass.count(); ++row) {
      attend_row(pass, row, seen_of(pass, row, keys), to);
    }
  } else {
    attend_panels(pass, keys, to, nullptr);
  }
}

// A row that sees nothing of a block stays as it is: its part of the block was not written. Nor is
// all that lies behind value_dim, which nobody reads.
void merge_rows(const attended_rows& rows, const attended_rows& block, extent count) {
  for (extent row = 0; row < count; row += column_panel) {
    const attended_rows to = rows.from(row), added = block.from(row);
    const auto factors = kernels::merge_statistics(to.statistics, added.statistics);
    for (extent q = 0; q < std::min<extent>(column_panel, count - row); ++q) {
      if (added.statistics.sum[q] == 0.0f) continue;
      kernels::merge_row(to.out + q * to.columns, added.out + q * added.columns, to.columns,
                         factors.before[q], factors.block[q]);
    }
  }
}

attended_rows attend_tile(const query_tile_pass& pass) {
  const attended_rows rows = pass.scratch().attended(pass.head().value_dim);
  const attended_rows block = pass.scratch().attended_block(pass.head().value_dim);
  clear_rows(rows, pass.count());
  if (are_few(pass)) {
    pass.for_each_key_tile({0, pass.head().key_len}, [&](extent first_key, extent keys) {
      attend_block(pass, {first_key, first_key + keys}, block);
      merge_rows(rows, block, pass.count());
    });
  } else {
    attend_panels(pass, {0, pass.head().key_len}, block, &rows);
  }
  return rows;
}

}  // namespace qkv
