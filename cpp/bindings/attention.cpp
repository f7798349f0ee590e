#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "qkv/trace.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// length_first: (batch, length, heads, dim) and not (batch, heads, length, dim). A mask axis of 1
// broadcasts.
// clang-format off
#define QKV_ATTENTION_CALL(integer, number)                                                    \
  integer(query) integer(key) integer(value) integer(mask)                                     \
  integer(out) integer(weights) integer(log_sum_exp)                                           \
  integer(workspace) integer(workspace_bytes)                                                  \
  integer(batch) integer(num_heads) integer(num_kv_heads)                                      \
  integer(query_len) integer(key_len) integer(head_dim) integer(value_dim)                     \
  integer(length_first)                                                                        \
  integer(mask_batch) integer(mask_heads) integer(mask_query_len) integer(mask_key_len)        \
  number(scale) integer(causal) integer(causal_offset)
// clang-format on

struct attention_call {
  QKV_ATTENTION_CALL(QKV_CALL_INT, QKV_CALL_FLOAT)

  attention_options options() const {
    attention_options result;
    result.scale = scale;
    result.mask.causal = causal != 0;
    result.mask.query_offset = causal_offset;
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
    return {heap_pointer<T>(data),
            {batch, count, length, dim},
            {length * count * dim, dim, count * dim, 1}};
  }
};

int attention(std::uintptr_t at) {
  const auto& call = call_at<attention_call>(at);
  const attention_inputs inputs{
      call.heads<const float>(call.query, call.num_heads, call.query_len, call.head_dim),
      call.heads<const float>(call.key, call.num_kv_heads, call.key_len, call.head_dim),
      call.heads<const float>(call.value, call.num_kv_heads, call.key_len, call.value_dim)};
  attention_outputs outputs;
  outputs.out = call.heads<float>(call.out, call.num_heads, call.query_len, call.value_dim);
  outputs.log_sum_exp =
      heap_view<float, 3>(call.log_sum_exp, {call.batch, call.num_heads, call.query_len});
  outputs.weights =
      heap_view<float, 4>(call.weights, {call.batch, call.num_heads, call.query_len, call.key_len});
  return static_cast<int>(attention_forward(inputs, call.options(), outputs,
                                            heap_workspace(call.workspace, call.workspace_bytes),
                                            pool()));
}

// Self-attention of x (length, embedDim) = (query_len, embed_dim) with every step kept;
// query, key, value, weights and out are outputs here.
// clang-format off
#define QKV_TRACE_CALL(integer)                                                                \
  integer(x) integer(wq) integer(wk) integer(wv) integer(embed_dim)                            \
  integer(scores) integer(scaled)
// clang-format on

struct trace_call : attention_call {
  QKV_TRACE_CALL(QKV_CALL_INT)
};

int trace(std::uintptr_t at) {
  const auto& call = call_at<trace_call>(at);
  const extent length = call.query_len;
  const trace_weights weights{heap_view<const float, 2>(call.wq, {call.embed_dim, call.head_dim}),
                              heap_view<const float, 2>(call.wk, {call.embed_dim, call.head_dim}),
                              heap_view<const float, 2>(call.wv, {call.embed_dim, call.value_dim})};
  const trace_outputs outputs{heap_view<float, 2>(call.query, {length, call.head_dim}),
                              heap_view<float, 2>(call.key, {length, call.head_dim}),
                              heap_view<float, 2>(call.value, {length, call.value_dim}),
                              heap_view<float, 2>(call.scores, {length, length}),
                              heap_view<float, 2>(call.scaled, {length, length}),
                              heap_view<float, 2>(call.weights, {length, length}),
                              heap_view<float, 2>(call.out, {length, call.value_dim})};
  return static_cast<int>(trace_forward(
      heap_view<const float, 2>(call.x, {length, call.embed_dim}), weights, call.options(), outputs,
      heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t attention_layout() {
  return text_address(QKV_ATTENTION_CALL(QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT));
}

std::uintptr_t trace_layout() {
  return text_address(QKV_ATTENTION_CALL(QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT)
                          QKV_TRACE_CALL(QKV_LAYOUT_INT));
}

// `rows`: batch * heads * queries where weights are wanted, else 0. As a double, which holds more than
// 32 bits and is a number in JavaScript.
double attention_bytes(extent head_dim, extent value_dim, extent rows) {
  return static_cast<double>(attention_workspace_bytes(head_dim, value_dim, pool().size()) +
                             attention_statistics_bytes(1, 1, rows));
}

double trace_bytes(extent length, extent embed_dim, extent head_dim, extent value_dim) {
  return static_cast<double>(
      trace_workspace_bytes(length, embed_dim, head_dim, value_dim, pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(attention) {
  using namespace qkv::bindings;
  emscripten::function("attention", &attention);
  emscripten::function("attentionLayout", &attention_layout);
  emscripten::function("attentionWorkspaceBytes", &attention_bytes);
  emscripten::function("trace", &trace);
  emscripten::function("traceLayout", &trace_layout);
  emscripten::function("traceWorkspaceBytes", &trace_bytes);
}
