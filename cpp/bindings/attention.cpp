#include "qkv/attention.hpp"

#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// window_left, window_right: -1 is no limit. sequences: how many are packed, 0 for none. The seed
// of dropout comes in two halves. Mask and bias span (batch, num_heads, query_len, key_len), with
// strides of 0 where they broadcast. On the way back out is what the loss's gradient by the output
// is, and gradients lie as what they are the gradients by.
// clang-format off
#define QKV_ATTENTION_CALL(tensor, integer, number)                                            \
  tensor(query) tensor(key) tensor(value) tensor(out) tensor(mask) tensor(bias)                \
  integer(batch) integer(num_heads) integer(num_kv_heads)                                      \
  integer(query_len) integer(key_len) integer(head_dim) integer(value_dim)                     \
  number(scale) number(softcap) integer(alibi_slopes) integer(sinks)                           \
  integer(causal) integer(window_left) integer(window_right)                                   \
  integer(query_offset) integer(query_offsets) integer(key_lengths)                            \
  integer(sequences) integer(sequence_queries) integer(sequence_keys)                          \
  number(dropout) integer(seed_low) integer(seed_high)                                         \
  integer(weights) integer(weight_heads) integer(weight_head_count)                            \
  integer(weight_queries) integer(weight_query_count) integer(mean_weights)                    \
  integer(scores) integer(score_stage) integer(log_sum_exp)                                    \
  integer(d_query) integer(d_key) integer(d_value) integer(d_bias) integer(d_sinks)            \
  integer(workspace) integer(workspace_bytes)
// clang-format on

struct attention_call {
  QKV_ATTENTION_CALL(QKV_CALL_TENSOR, QKV_CALL_INT, QKV_CALL_FLOAT)

  attention_inputs inputs() const {
    return {heap_view<const float>(query, {batch, num_heads, query_len, head_dim}),
            heap_view<const float>(key, {batch, num_kv_heads, key_len, head_dim}),
            heap_view<const float>(value, {batch, num_kv_heads, key_len, value_dim})};
  }

  attention_mask masks() const {
    attention_mask result;
    result.causal = causal != 0;
    result.window_left = window_left < 0 ? unlimited : window_left;
    result.window_right = window_right < 0 ? unlimited : window_right;
    result.query_offset = query_offset;
    result.query_offsets = heap_pointer<const std::int32_t>(query_offsets);
    result.key_lengths = heap_pointer<const std::int32_t>(key_lengths);
    result.allowed = heap_view<const std::uint8_t>(mask, score_shape());
    return result;
  }

  attention_options options() const {
    attention_options result;
    result.scale = scale;
    result.softcap = softcap;
    result.bias = heap_view<const float>(bias, score_shape());
    result.alibi_slopes = heap_pointer<const float>(alibi_slopes);
    result.sinks = heap_pointer<const float>(sinks);
    result.mask = masks();
    result.sequences = {sequences, heap_pointer<const std::int32_t>(sequence_queries),
                        heap_pointer<const std::int32_t>(sequence_keys)};
    const auto seed = static_cast<std::uint64_t>(static_cast<std::uint32_t>(seed_high)) << 32;
    result.dropout = {dropout, seed | static_cast<std::uint32_t>(seed_low)};
    return result;
  }

  attention_outputs outputs() const {
    const extent heads = weight_heads != 0 ? weight_head_count : num_heads;
    const extent queries = weight_queries != 0 ? weight_query_count : query_len;
    attention_outputs result;
    result.out = heap_view<float>(out, {batch, num_heads, query_len, value_dim});
    result.log_sum_exp = heap_view<float, 3>(log_sum_exp, {batch, num_heads, query_len});
    result.weights = heap_view<float, 4>(weights, {batch, heads, queries, key_len});
    result.weight_heads = heap_view<const std::int32_t, 1>(weight_heads, {weight_head_count});
    result.weight_queries = heap_view<const std::int32_t, 1>(weight_queries, {weight_query_count});
    result.mean_weights = heap_view<float, 3>(mean_weights, {batch, query_len, key_len});
    result.scores = heap_view<float, 4>(scores, score_shape());
    result.stage = static_cast<qkv::score_stage>(score_stage);
    return result;
  }

  view<const float, 4> d_out() const {
    return heap_view<const float>(out, {batch, num_heads, query_len, value_dim});
  }

  attention_gradients gradients() const {
    const auto of = [](address data, const view<const float, 4>& input) {
      return view<float, 4>{heap_pointer<float>(data), input.shape, input.strides};
    };
    const auto [query_rows, key_rows, value_rows] = inputs();
    return {of(d_query, query_rows), of(d_key, key_rows), of(d_value, value_rows),
            of(d_bias, options().bias), heap_pointer<float>(d_sinks)};
  }

 private:
  std::array<extent, 4> score_shape() const { return {batch, num_heads, query_len, key_len}; }
};

int attention(std::uintptr_t at) {
  const auto& call = call_at<attention_call>(at);
  return static_cast<int>(attention_forward(call.inputs(), call.options(), call.outputs(),
                                            heap_workspace(call.workspace, call.workspace_bytes),
                                            pool()));
}

int attention_back(std::uintptr_t at) {
  const auto& call = call_at<attention_call>(at);
  return static_cast<int>(
      attention_backward(call.d_out(), call.inputs(), call.options(), call.gradients(),
                         heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t attention_layout() {
  return text_address(QKV_ATTENTION_CALL(QKV_LAYOUT_TENSOR, QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT));
}

// `rows`: batch * heads * queries where weights are wanted, else 0. As a double, which holds more
// than 32 bits and is a number in JavaScript.
double attention_bytes(extent head_dim, extent value_dim, extent rows) {
  return static_cast<double>(attention_workspace_bytes(head_dim, value_dim, pool().size()) +
                             attention_statistics_bytes(1, 1, rows));
}

// `rows`: batch * heads * queries.
double attention_backward_bytes(extent rows, extent key_len, extent head_dim, extent value_dim) {
  const view<const float, 4> query{nullptr, {1, 1, rows, head_dim}, {}};
  const view<const float, 4> key{nullptr, {1, 1, key_len, head_dim}, {}};
  const view<const float, 4> value{nullptr, {1, 1, key_len, value_dim}, {}};
  return static_cast<double>(
      attention_backward_workspace_bytes({query, key, value}, pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(attention) {
  using namespace qkv::bindings;
  emscripten::function("attention", &attention);
  emscripten::function("attentionLayout", &attention_layout);
  emscripten::function("attentionWorkspaceBytes", &attention_bytes);
  emscripten::function("attentionBackward", &attention_back);
  emscripten::function("attentionBackwardLayout", &attention_layout);
  emscripten::function("attentionBackwardWorkspaceBytes", &attention_backward_bytes);
}
