// Writes weights or scores: those that the fused pass kept become weights, or scores are computed
// again after it by the same kernel, and weights need no more than the row statistics. Asking for
// them costs time, but never changes `out`.
#include "attention_tile.hpp"
#include "kernels/attend_row.hpp"

namespace qkv {

namespace {

// Calls finish(part) on every panel of scores and writes the panel, [key][query], as rows.
template <typename Finish>
void write_panels(const query_tile_pass& pass, score_stage stage, kernels::write mode, float* rows,
                  extent stride, const Finish& finish) {
  pass.for_each_key_tile([&](extent first_key, extent keys) {
    pass.for_each_panel(first_key, keys, stage, [&](const kernels::panel_range& part) {
      finish(part);
      kernels::unpack_panel(pass.scratch().scores, part.keys, part.queries,
                            rows + (part.first_query - pass.first()) * stride + part.first_key,
                            stride, mode);
    });
  });
}

}  // namespace

void kept_scores_to_weights(const attention_head& head, extent row,
                            kernels::softmax_rows statistics, key_range all) {
  float* scores = head.scores.data + row * head.scores.stride;
  key_range seen = head.rules.keys_for(row);
  if (seen.empty()) seen = {0, 0};
  std::fill(scores + all.begin, scores + seen.begin, 0.0f);
  kernels::finished_row_weights(scores + seen.begin, seen.end - seen.begin, *statistics.max,
                                *statistics.sum);
  std::fill(scores + seen.end, scores + all.end, 0.0f);
}

void write_weights_tile(const query_tile_pass& pass, float* rows, extent stride,
                        kernels::write mode) {
  write_panels(pass, score_stage::biased, mode, rows, stride,
               [&](const kernels::panel_range& part) {
                 kernels::finished_weights(pass.scratch().scores, part.keys,
                                           pass.scratch().rows(part.first_query - pass.first()));
               });
}

void write_scores_tile(const query_tile_pass& pass, score_stage stage, float* rows, extent stride) {
  write_panels(pass, stage, kernels::write::store, rows, stride,
               [](const kernels::panel_range&) {});
}

}  // namespace qkv
