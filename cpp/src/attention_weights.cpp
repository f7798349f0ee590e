// The pass that writes weights, after the fused one: scores are computed again by the same kernel
// and need no more than the row statistics. Asking for weights so costs time, but never changes
// `out`.
#include "attention_tile.hpp"

namespace qkv {

namespace {

// Calls finish(part) on every panel of scores and writes the panel, [key][query], as rows of `to`.
template <typename Finish>
void write_panels(const query_tile_pass& pass, float* to, extent stride, const Finish& finish) {
  pass.for_each_key_tile([&](extent first_key, extent keys) {
    pass.for_each_panel(first_key, keys, [&](const query_tile_pass::panel& part) {
      finish(part);
      for (extent q = 0; q < part.queries; ++q) {
        const float* column = pass.scratch().scores + q;
        float* row = to + (pass.first() + part.query + q) * stride + part.key;
        for (extent j = 0; j < part.keys; ++j) row[j] = column[j * kernels::column_panel];
      }
    });
  });
}

}  // namespace

void attention_weights_tile(const query_tile_pass& pass, float* weights, extent stride) {
  for (extent q = 0; q < pass.count(); ++q) {
    std::fill_n(weights + (pass.first() + q) * stride, pass.head().key_len, 0.0f);
  }
  write_panels(pass, weights, stride, [&](const query_tile_pass::panel& part) {
    kernels::finished_weights(pass.scratch().scores, part.keys, pass.scratch().rows(part.query));
  });
}

void attention_scores_tile(const query_tile_pass& pass, float* scores, extent stride) {
  write_panels(pass, scores, stride, [](const query_tile_pass::panel&) {});
}

}  // namespace qkv
