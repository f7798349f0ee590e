// Scaled dot-product attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1):
//
//   scores = scale * query . key^T,  weights = softmax over the visible keys,  out = weights .
//   value
//
// computed tile by tile with a running maximum and sum (Dao et al., "FlashAttention", 2022), so
// that no score matrix is ever held.
#pragma once

#include "qkv/mask.hpp"
#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

// Any strides will do, but for the last axis, which must be contiguous.
struct attention_inputs {
  view<const float, 4> query;  // (batch, num_heads, query_len, head_dim)
  view<const float, 4> key;    // (batch, num_kv_heads, key_len, head_dim)
  view<const float, 4> value;  // (batch, num_kv_heads, key_len, value_dim)
};

struct attention_options {
  // Multiplies query . key; see default_scale(). Must be finite; 0 is 0.
  float scale = 1.0f;
  attention_mask mask;
};

// A score of -Infinity hides its key as a mask does, wherever it comes from. Weights are applied
// before they are divided by their sum, so a row's values may not sum to more than a float holds.
//
// Empty views are not computed. Asking for more never changes a bit of `out`.
struct attention_outputs {
  view<float, 4> out;          // (batch, num_heads, query_len, value_dim); rows that see no key: 0
  view<float, 4> weights;      // (batch, num_heads, query_len, key_len); such rows: 0
  view<float, 3> log_sum_exp;  // (batch, num_heads, query_len), natural log; such rows: -Infinity
};

// 1 / sqrt(head_dim), the paper's scale; 1 where there are no dimensions.
float default_scale(extent head_dim);

// Independent of all lengths: tiles of a fixed size for each worker.
byte_count attention_workspace_bytes(extent head_dim, extent value_dim, int workers);

// num_heads is a multiple of num_kv_heads; query head h reads key head h / (num_heads /
// num_kv_heads). Errors: shape_mismatch, invalid_argument (scale, strides), out_of_memory (a
// workspace smaller than attention_workspace_bytes()). On an error nothing is written.
status attention_forward(const attention_inputs& inputs, const attention_options& options,
                         const attention_outputs& outputs, workspace memory, thread_pool& pool);

// scores = scale * query . key^T for every pair, masked or not: (batch, num_heads, query_len,
// key_len). The same bits as attention_forward() computes inside. Value is not read.
status attention_scores(const attention_inputs& inputs, float scale, const view<float, 4>& scores,
                        workspace memory, thread_pool& pool);

}  // namespace qkv
