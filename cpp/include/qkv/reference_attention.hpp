// The gradients of attention as plain loops, beside the forward lines that they differentiate. T is
// float or double; everything is contiguous and row-major. d_name is the gradient of a scalar loss
// by name; d_out is what the loss says of the output.
#pragma once

#include "qkv/reference.hpp"

namespace qkv::reference {

template <typename T>
struct attention_gradients {
  std::vector<T> d_query, d_key, d_value;  // shaped as query, key and value
  std::vector<T> d_bias;   // (batch, num_heads, query_len, key_len), not summed where it broadcasts
  std::vector<T> d_sinks;  // num_heads
};

// One row on its forward way; the sink is one more score, at the end.
template <typename T>
struct attention_row {
  std::vector<T> scaled, scores, weights;

  attention_row(const T* q, const T* keys, extent key_len, extent head_dim,
                const attention_rules<T>& rules, extent b, extent h, extent i)
      : scaled(key_len), scores(key_len + 1, -std::numeric_limits<T>::infinity()) {
    bool nothing_seen = true;
    for (extent j = 0; j < key_len; ++j) {
      T product = 0;
      for (extent d = 0; d < head_dim; ++d) product += q[d] * keys[j * head_dim + d];
      scaled[j] = product * rules.scale;
      scores[j] = rules.score(product, b, h, i, j);
      if (!hidden(j)) nothing_seen = false;
    }
    if (rules.sink && !nothing_seen) scores[key_len] = rules.sink(h);
    weights = scores;
    softmax_row(weights.data(), key_len + 1);
  }

  bool hidden(extent j) const { return scores[j] == -std::numeric_limits<T>::infinity(); }
};

// What a row's softmax needs: the sum of weights[j] * d_weights[j] over the keys, which is also
// that of d_out[d] * out[d] over the dims (Dao et al., "FlashAttention", 2022, appendix B.2).
enum class softmax_product { of_weights, of_output };

// Shapes as in attention(); d_out: (batch, num_heads, query_len, value_dim).
template <typename T>
attention_gradients<T> attention_backward(const std::vector<T>& d_out, const std::vector<T>& query,
                                          const std::vector<T>& key, const std::vector<T>& value,
                                          const attention_sizes& sizes,
                                          const attention_rules<T>& rules,
                                          softmax_product way = softmax_product::of_weights) {
  const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = sizes;
  attention_gradients<T> made{
      std::vector<T>(query.size()), std::vector<T>(key.size()), std::vector<T>(value.size()),
      std::vector<T>(batch * num_heads * query_len * key_len), std::vector<T>(num_heads)};
  for (extent row = 0; row < batch * num_heads * query_len; ++row) {
    const extent i = row % query_len, h = row / query_len % num_heads;
    const extent b = row / query_len / num_heads;
    const extent kv_row = (b * num_kv_heads + h / (num_heads / num_kv_heads)) * key_len;
    const T* q = query.data() + row * head_dim;
    const T* keys = key.data() + kv_row * head_dim;
    const T* d_row = d_out.data() + row * value_dim;
    const attention_row<T> forward(q, keys, key_len, head_dim, rules, b, h, i);
    std::vector<T> d_weights(key_len), out(value_dim);
    T product = 0;
    for (extent j = 0; j < key_len; ++j) {
      if (forward.hidden(j) || (rules.dropped && rules.dropped(b, h, i, j))) continue;
      for (extent d = 0; d < value_dim; ++d) {
        const extent at = (kv_row + j) * value_dim + d;
        out[d] += forward.weights[j] / rules.kept * value[at];
        d_weights[j] += d_row[d] * value[at] / rules.kept;
        made.d_value[at] += forward.weights[j] / rules.kept * d_row[d];
      }
      product += forward.weights[j] * d_weights[j];
    }
    if (way == softmax_product::of_output) {
      product = 0;
      for (extent d = 0; d < value_dim; ++d) product += d_row[d] * out[d];
    }
    // weights[j] = exp(scores[j]) / total, total = sum of exp(scores[k]):
    // d weights[k] / d scores[j] = weights[k] ([k = j] - weights[j])
    if (rules.sink) made.d_sinks[h] += forward.weights[key_len] * (0 - product);
    for (extent j = 0; j < key_len; ++j) {
      if (forward.hidden(j)) continue;
      const T d_score = forward.weights[j] * (d_weights[j] - product);
      // score = capped + bias - alibi
      made.d_bias[row * key_len + j] = d_score;
      // capped = softcap * tanh(scaled / softcap)
      const T tangent = rules.softcap == 0 ? 0 : std::tanh(forward.scaled[j] / rules.softcap);
      const T d_scaled = d_score * (1 - tangent * tangent);
      for (extent d = 0; d < head_dim; ++d) {
        // scaled = scale * sum of q[d] * k[j][d]
        made.d_query[row * head_dim + d] += d_scaled * rules.scale * keys[j * head_dim + d];
        made.d_key[(kv_row + j) * head_dim + d] += d_scaled * rules.scale * q[d];
      }
    }
  }
  return made;
}

}  // namespace qkv::reference
