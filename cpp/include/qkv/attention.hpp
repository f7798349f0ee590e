// Scaled dot-product attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1)
// with what was added to it since. The score of a query and a key goes through, in this order:
//
//   scaled = scale * query . key
//   capped = softcap * tanh(scaled / softcap)                     where there is a softcap
//   biased = capped + bias - slope * |position - key index|       where there are bias and ALiBi
//   -Infinity where any mask hides the key
//
// then weights = exp(biased) / (sum of exp(biased) over the row + exp(sink)), dropout, and
// out = weights . value. It is computed block by block of the keys, which are merged by their
// maxima and sums (Dao et al., "FlashAttention", 2022), so that no score matrix is ever held.
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

// Sequences packed one after another along the query and key axes, each seeing only itself. Offsets
// have count + 1 entries that rise from 0 to the axis' length.
struct packed_sequences {
  extent count = 0;  // 0: not packed
  const std::int32_t* query_offsets = nullptr;
  const std::int32_t* key_offsets = nullptr;
};

// Weights are set to 0 with this probability and the others divided by 1 - probability (Srivastava
// et al., 2014). Which ones depends on the seed, the key and the row alone, whose number is counted
// over batches, heads and queries.
struct attention_dropout {
  float probability = 0.0f;
  std::uint64_t seed = 0;
};

struct attention_options {
  // Multiplies query . key; see default_scale(). Must be finite; 0 is 0.
  float scale = 1.0f;
  // 0: none.
  float softcap = 0.0f;
  // Added to the scores, (batch, num_heads, query_len, key_len); -Infinity forbids; strides of 0
  // broadcast. May be empty.
  view<const float, 4> bias;
  // num_heads slopes (Press et al., "Train Short, Test Long", 2022), or null.
  const float* alibi_slopes = nullptr;
  // num_heads logits that take part in each row's sum but weigh no value, or null.
  const float* sinks = nullptr;
  attention_mask mask;
  packed_sequences sequences;
  attention_dropout dropout;
};

// How far a score has come.
enum class score_stage { scaled, capped, biased };

// A score of -Infinity hides its key as a mask does, wherever it comes from. Weights are applied
// before they are divided by their sum, so a row's values may not sum to more than a float holds.
//
// Empty views are not computed. Asking for more never changes a bit of `out`.
struct attention_outputs {
  view<float, 4> out;          // (batch, num_heads, query_len, value_dim); rows that see no key: 0
  view<float, 3> log_sum_exp;  // (batch, num_heads, query_len), natural log, sink included; such
                               // rows: -Infinity
  // Before dropout; rows that see no key: 0. (batch, heads, queries, key_len), where heads and
  // queries are those chosen below.
  view<float, 4> weights;
  view<const std::int32_t, 1> weight_heads;    // empty: all
  view<const std::int32_t, 1> weight_queries;  // empty: all
  view<float, 3> mean_weights;                 // over the heads: (batch, query_len, key_len)
  // (batch, num_heads, query_len, key_len); biased: -Infinity where the key is hidden.
  view<float, 4> scores;
  score_stage stage = score_stage::scaled;
};

// 1 / sqrt(head_dim), the paper's scale; 1 where there are no dimensions.
float default_scale(extent head_dim);

// Tiles of a fixed size for each worker, and where there are several what blocks of keys gave until
// it is merged, independent of all lengths; and with weights the statistics of
// batch * num_heads * query_len rows.
byte_count attention_workspace_bytes(extent head_dim, extent value_dim, int workers);
byte_count attention_statistics_bytes(extent batch, extent num_heads, extent query_len);

// num_heads is a multiple of num_kv_heads; query head h reads key head h / (num_heads /
// num_kv_heads). Errors: shape_mismatch, invalid_argument (scale, softcap, dropout, strides,
// offsets, selections), out_of_memory (a workspace too small). On an error nothing is written.
status attention_forward(const attention_inputs& inputs, const attention_options& options,
                         const attention_outputs& outputs, workspace memory, thread_pool& pool);

// What the loss's gradient by each input is, by the chain rule from its gradient by `out`. Where a
// score is hidden nothing passes, so a row that sees no key and a key that no query sees have
// gradients of 0, whatever they hold.
struct attention_gradients {
  view<float, 4> d_query;  // (batch, num_heads, query_len, head_dim)
  view<float, 4> d_key;    // (batch, num_kv_heads, key_len, head_dim), summed over the query heads
  view<float, 4> d_value;  // (batch, num_kv_heads, key_len, value_dim), likewise
  // (batch, num_heads, query_len, key_len), with strides of 0 where the bias is broadcast: there
  // the sum. The last stride is 0 or 1. Empty: not computed.
  view<float, 4> d_bias;
  float* d_sinks = nullptr;  // num_heads; null: not computed
};

// Tiles of queries by all keys for each worker, and the statistics of batch * num_heads * query_len
// rows.
byte_count attention_backward_workspace_bytes(const attention_inputs& inputs, int workers);

// d_out: (batch, num_heads, query_len, value_dim), the gradient by what attention_forward() gives
// for the same inputs and options. Scores are computed again: with weights P = softmax(scores),
// which dropout turns into P', and D = the row sums of P * dP (Dao, "FlashAttention-2", 2023,
// section 3.1.2),
//
//   d_value = P'^T . d_out      dP = dropout(d_out . value^T)      dS = P * (dP - D)
//   d_query = scale * dS . key  d_key = scale * dS^T . query       d_sink = -sum of P_sink * D
//
// where dS is d_bias, and is multiplied by the slope of the soft cap before it goes on. Errors: as
// attention_forward(); a d_bias or d_sinks without bias or sinks is an invalid_argument.
status attention_backward(view<const float, 4> d_out, const attention_inputs& inputs,
                          const attention_options& options, const attention_gradients& gradients,
                          workspace memory, thread_pool& pool);

}  // namespace qkv
