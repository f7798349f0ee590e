// Self-attention with every step kept: what the lesson shows.
#pragma once

#include "qkv/attention.hpp"
#include "qkv/linear.hpp"

namespace qkv {

struct trace_weights {
  view<const float, 2> wq;  // (embed_dim, head_dim)
  view<const float, 2> wk;  // (embed_dim, head_dim)
  view<const float, 2> wv;  // (embed_dim, value_dim)
};

// The five steps for one head over x: (length, embed_dim).
struct trace_outputs {
  view<float, 2> query;    // 1. project: x . wq, (length, head_dim)
  view<float, 2> key;      //             x . wk, (length, head_dim)
  view<float, 2> value;    //             x . wv, (length, value_dim)
  view<float, 2> scores;   // 2. score: query . key^T, (length, length), before any mask
  view<float, 2> scaled;   // 3. scale: scores * scale
  view<float, 2> weights;  // 4. softmax over the visible keys
  view<float, 2> out;      // 5. mix: weights . value, (length, value_dim)
};

byte_count trace_workspace_bytes(extent length, extent embed_dim, extent head_dim, extent value_dim,
                                 int workers);

// Errors: as linear_forward() and attention_forward(); the steps before the one that was refused
// are written.
status trace_forward(view<const float, 2> x, const trace_weights& weights,
                     const attention_options& options, const trace_outputs& outputs,
                     workspace memory, thread_pool& pool);

}  // namespace qkv
