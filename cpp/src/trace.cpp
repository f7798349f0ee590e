#include "qkv/trace.hpp"

#include <algorithm>
#include <utility>

#include "eigen.hpp"

namespace qkv {

namespace {

// One batch, one head.
template <typename T>
view<T, 4> as_head(const view<T, 2>& rows) {
  return {
      rows.data, {1, 1, rows.shape[0], rows.shape[1]}, {0, 0, rows.strides[0], rows.strides[1]}};
}

view<const float, 4> as_input(const view<float, 2>& rows) { return as_head<const float>(rows); }

status project(view<const float, 2> x, const trace_weights& weights, const trace_outputs& outputs,
               workspace memory, thread_pool& pool) {
  const std::pair<view<const float, 2>, view<float, 2>> projections[] = {
      {weights.wq, outputs.query}, {weights.wk, outputs.key}, {weights.wv, outputs.value}};
  for (const auto& [weight, out] : projections) {
    const status done = linear_forward(x, weight, nullptr, out, memory, pool);
    if (done != status::ok) return done;
  }
  return status::ok;
}

}  // namespace

byte_count trace_workspace_bytes(extent length, extent embed_dim, extent head_dim, extent value_dim,
                                 int workers) {
  return std::max({linear_workspace_bytes(embed_dim, head_dim, workers),
                   linear_workspace_bytes(embed_dim, value_dim, workers),
                   attention_workspace_bytes(head_dim, value_dim, workers) +
                       attention_statistics_bytes(1, 1, length)});
}

status trace_forward(view<const float, 2> x, const trace_weights& weights,
                     const attention_options& options, const trace_outputs& outputs,
                     workspace memory, thread_pool& pool) {
  if (outputs.scaled.shape != outputs.scores.shape) return status::shape_mismatch;
  if (const status done = project(x, weights, outputs, memory, pool); done != status::ok) {
    return done;
  }
  const attention_inputs inputs{as_input(outputs.query), as_input(outputs.key),
                                as_input(outputs.value)};
  attention_outputs scored;
  scored.scores = as_head(outputs.scores);
  const status done = attention_forward(inputs, {}, scored, memory, pool);
  if (done != status::ok) return done;
  as_array(outputs.scaled) = as_array(outputs.scores) * options.scale;
  attention_outputs attended;
  attended.out = as_head(outputs.out);
  attended.weights = as_head(outputs.weights);
  return attention_forward(inputs, options, attended, memory, pool);
}

}  // namespace qkv
