#include <emscripten/bind.h>

#include "heap.hpp"
#include "qkv/trace.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

struct attention_call {
  address query, key, value, mask, out, weights, log_sum_exp, workspace;
  std::size_t workspace_bytes;
  extent batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim;
  // (batch, length, heads, dim) and not (batch, heads, length, dim).
  bool length_first;
  // 1 broadcasts.
  extent mask_batch, mask_heads, mask_query_len, mask_key_len;
  float scale;
  bool causal;
  extent causal_offset;

  attention_options options() const {
    attention_options result;
    result.scale = scale;
    result.mask.causal = {causal, causal_offset};
    if (mask != 0) {
      auto allowed = heap_view<const std::uint8_t, 4>(
          mask, {mask_batch, mask_heads, mask_query_len, mask_key_len});
      for (int axis = 0; axis < 4; ++axis) {
        if (allowed.shape[axis] == 1) allowed.strides[axis] = 0;
      }
      allowed.shape = {batch, num_heads, query_len, key_len};
      result.mask.allowed = allowed;
    }
    return result;
  }

  template <typename T>
  view<T, 4> heads(address data, extent count, extent length, extent dim) const {
    if (!length_first) return heap_view<T, 4>(data, {batch, count, length, dim});
    return {reinterpret_cast<T*>(data),
            {batch, count, length, dim},
            {length * count * dim, dim, count * dim, 1}};
  }
};

int attention(const attention_call& call) {
  const attention_inputs inputs{
      call.heads<const float>(call.query, call.num_heads, call.query_len, call.head_dim),
      call.heads<const float>(call.key, call.num_kv_heads, call.key_len, call.head_dim),
      call.heads<const float>(call.value, call.num_kv_heads, call.key_len, call.value_dim)};
  const attention_outputs outputs{
      call.heads<float>(call.out, call.num_heads, call.query_len, call.value_dim),
      heap_view<float, 4>(call.weights, {call.batch, call.num_heads, call.query_len, call.key_len}),
      heap_view<float, 3>(call.log_sum_exp, {call.batch, call.num_heads, call.query_len})};
  return static_cast<int>(attention_forward(inputs, call.options(), outputs,
                                            heap_workspace(call.workspace, call.workspace_bytes),
                                            pool()));
}

// Self-attention of x (length, embedDim) = (attention.query_len, embed_dim) with every step kept;
// of `attention` it reads the sizes, the options, the workspace, and writes to query, key, value,
// weights and out.
struct trace_call {
  attention_call attention;
  address x, wq, wk, wv, scores, scaled;
  extent embed_dim;
};

int trace(const trace_call& call) {
  const attention_call& sizes = call.attention;
  const extent length = sizes.query_len;
  const trace_weights weights{
      heap_view<const float, 2>(call.wq, {call.embed_dim, sizes.head_dim}),
      heap_view<const float, 2>(call.wk, {call.embed_dim, sizes.head_dim}),
      heap_view<const float, 2>(call.wv, {call.embed_dim, sizes.value_dim})};
  const trace_outputs outputs{heap_view<float, 2>(sizes.query, {length, sizes.head_dim}),
                              heap_view<float, 2>(sizes.key, {length, sizes.head_dim}),
                              heap_view<float, 2>(sizes.value, {length, sizes.value_dim}),
                              heap_view<float, 2>(call.scores, {length, length}),
                              heap_view<float, 2>(call.scaled, {length, length}),
                              heap_view<float, 2>(sizes.weights, {length, length}),
                              heap_view<float, 2>(sizes.out, {length, sizes.value_dim})};
  return static_cast<int>(trace_forward(
      heap_view<const float, 2>(call.x, {length, call.embed_dim}), weights, sizes.options(),
      outputs, heap_workspace(sizes.workspace, sizes.workspace_bytes), pool()));
}

std::size_t attention_bytes(extent head_dim, extent value_dim) {
  return attention_workspace_bytes(head_dim, value_dim, pool().size());
}

std::size_t trace_bytes(extent embed_dim, extent head_dim, extent value_dim) {
  return trace_workspace_bytes(embed_dim, head_dim, value_dim, pool().size());
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(attention) {
  using namespace qkv::bindings;
  using emscripten::value_object;
  value_object<attention_call>("AttentionCall")
      .field("query", &attention_call::query)
      .field("key", &attention_call::key)
      .field("value", &attention_call::value)
      .field("mask", &attention_call::mask)
      .field("out", &attention_call::out)
      .field("weights", &attention_call::weights)
      .field("logSumExp", &attention_call::log_sum_exp)
      .field("workspace", &attention_call::workspace)
      .field("workspaceBytes", &attention_call::workspace_bytes)
      .field("batch", &attention_call::batch)
      .field("numHeads", &attention_call::num_heads)
      .field("numKvHeads", &attention_call::num_kv_heads)
      .field("queryLen", &attention_call::query_len)
      .field("keyLen", &attention_call::key_len)
      .field("headDim", &attention_call::head_dim)
      .field("valueDim", &attention_call::value_dim)
      .field("lengthFirst", &attention_call::length_first)
      .field("maskBatch", &attention_call::mask_batch)
      .field("maskHeads", &attention_call::mask_heads)
      .field("maskQueryLen", &attention_call::mask_query_len)
      .field("maskKeyLen", &attention_call::mask_key_len)
      .field("scale", &attention_call::scale)
      .field("causal", &attention_call::causal)
      .field("causalOffset", &attention_call::causal_offset);
  value_object<trace_call>("TraceCall")
      .field("attention", &trace_call::attention)
      .field("x", &trace_call::x)
      .field("wq", &trace_call::wq)
      .field("wk", &trace_call::wk)
      .field("wv", &trace_call::wv)
      .field("scores", &trace_call::scores)
      .field("scaled", &trace_call::scaled)
      .field("embedDim", &trace_call::embed_dim);
  emscripten::function("attention", &attention);
  emscripten::function("attentionWorkspaceBytes", &attention_bytes);
  emscripten::function("trace", &trace);
  emscripten::function("traceWorkspaceBytes", &trace_bytes);
}
