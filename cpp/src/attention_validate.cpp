// What attention_forward() and attention_backward() refuse.
#include "attention_validate.hpp"

#include <cmath>

#include "contiguous.hpp"

namespace qkv {

namespace {

bool rising(const std::int32_t* offsets, extent count, extent end) {
  for (extent i = 0; i < count; ++i) {
    if (offsets[i] > offsets[i + 1]) return false;
  }
  return offsets[0] == 0 && offsets[count] == end;
}

bool within(const view<const std::int32_t, 1>& chosen, extent limit) {
  for (extent i = 0; i < chosen.shape[0]; ++i) {
    if (chosen(i) < 0 || chosen(i) >= limit) return false;
  }
  return true;
}

bool shapes_fit(const attention_inputs& inputs, const attention_options& options,
                const attention_outputs& outputs) {
  const auto& [query, key, value] = inputs;
  const auto& [batch, num_heads, query_len, head_dim] = query.shape;
  const extent num_kv_heads = key.shape[1], key_len = key.shape[2], value_dim = value.shape[3];
  const bool heads_match = num_kv_heads == 0 ? num_heads == 0 : num_heads % num_kv_heads == 0;
  const std::array score_shape{batch, num_heads, query_len, key_len};
  const extent heads = outputs.weight_heads ? outputs.weight_heads.shape[0] : num_heads;
  const extent queries = outputs.weight_queries ? outputs.weight_queries.shape[0] : query_len;
  const auto fits = [](const auto& tensor, const auto& shape) {
    return !tensor || tensor.shape == shape;
  };
  return heads_match && key.shape[0] == batch && key.shape[3] == head_dim &&
         value.shape == std::array{batch, num_kv_heads, key_len, value_dim} &&
         fits(outputs.out, std::array{batch, num_heads, query_len, value_dim}) &&
         fits(options.bias, score_shape) && fits(options.mask.allowed, score_shape) &&
         fits(outputs.log_sum_exp, std::array{batch, num_heads, query_len}) &&
         fits(outputs.weights, std::array{batch, heads, queries, key_len}) &&
         fits(outputs.mean_weights, std::array{batch, query_len, key_len}) &&
         fits(outputs.scores, score_shape);
}

bool rules_are_valid(const attention_inputs& inputs, const attention_options& options) {
  const attention_mask& mask = options.mask;
  const extent batch = inputs.query.shape[0], key_len = inputs.key.shape[2];
  for (extent b = 0; mask.key_lengths != nullptr && b < batch; ++b) {
    if (mask.key_lengths[b] < 0 || mask.key_lengths[b] > key_len) return false;
  }
  const packed_sequences& packs = options.sequences;
  if (packs.count > 0 && (batch != 1 || mask.key_lengths != nullptr ||
                          !rising(packs.query_offsets, packs.count, inputs.query.shape[2]) ||
                          !rising(packs.key_offsets, packs.count, key_len))) {
    return false;
  }
  const float dropout = options.dropout.probability;
  return std::isfinite(options.scale) && std::isfinite(options.softcap) && options.softcap >= 0 &&
         dropout >= 0 && dropout < 1 && mask.window_left >= 0 && mask.window_right >= 0;
}

}  // namespace

status validate_attention(const attention_inputs& inputs, const attention_options& options,
                          const attention_outputs& outputs) {
  if (!shapes_fit(inputs, options, outputs)) return status::shape_mismatch;
  const bool contiguous = rows_are_contiguous(inputs.query) && rows_are_contiguous(inputs.key) &&
                          rows_are_contiguous(inputs.value) && rows_are_contiguous(outputs.out) &&
                          rows_are_contiguous(outputs.weights) &&
                          rows_are_contiguous(outputs.mean_weights) &&
                          rows_are_contiguous(outputs.scores);
  const bool valid = contiguous && rules_are_valid(inputs, options) &&
                     within(outputs.weight_heads, inputs.query.shape[1]) &&
                     within(outputs.weight_queries, inputs.query.shape[2]);
  return valid ? status::ok : status::invalid_argument;
}

status validate_attention_backward(const view<const float, 4>& d_out,
                                   const attention_inputs& inputs, const attention_options& options,
                                   const attention_gradients& gradients) {
  const status checked = validate_attention(inputs, options, {});
  if (checked != status::ok) return checked;
  const auto& [d_query, d_key, d_value, d_bias, d_sinks] = gradients;
  const std::array out_shape{inputs.query.shape[0], inputs.query.shape[1], inputs.query.shape[2],
                             inputs.value.shape[3]};
  if (d_out.shape != out_shape || d_query.shape != inputs.query.shape ||
      d_key.shape != inputs.key.shape || d_value.shape != inputs.value.shape ||
      (d_bias && options.bias && d_bias.shape != options.bias.shape)) {
    return status::shape_mismatch;
  }
  const bool contiguous = rows_are_contiguous(d_out) && rows_are_contiguous(d_query) &&
                          rows_are_contiguous(d_key) && rows_are_contiguous(d_value) &&
                          (rows_are_contiguous(d_bias) || d_bias.strides[3] == 0);
  const bool given = (!d_bias || options.bias) && (d_sinks == nullptr || options.sinks != nullptr);
  return contiguous && given ? status::ok : status::invalid_argument;
}

}  // namespace qkv
