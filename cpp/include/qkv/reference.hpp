// The same operations as plain loops: the oracle of the tests, the plain contestant of the benches,
// and the place to start reading. T is float or double; everything is contiguous and row-major. The
// recurrent cells are in reference_recurrent.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "qkv/view.hpp"

namespace qkv::reference {

// x: (rows, in_dim), weight: (in_dim, out_dim), bias: out_dim or empty -> (rows, out_dim)
template <typename T>
std::vector<T> linear(const std::vector<T>& x, const std::vector<T>& weight,
                      const std::vector<T>& bias, extent rows, extent in_dim, extent out_dim) {
  std::vector<T> out(rows * out_dim);
  for (extent r = 0; r < rows; ++r) {
    for (extent j = 0; j < out_dim; ++j) {
      T sum = 0;
      for (extent k = 0; k < in_dim; ++k) sum += x[r * in_dim + k] * weight[k * out_dim + j];
      out[r * out_dim + j] = bias.empty() ? sum : sum + bias[j];
    }
  }
  return out;
}

// One row, in place. Returns the log of the sum of exponentials.
template <typename T>
T softmax_row(T* row, extent columns) {
  const T minus_infinity = -std::numeric_limits<T>::infinity();
  T largest = minus_infinity;
  for (extent j = 0; j < columns; ++j) largest = row[j] > largest ? row[j] : largest;
  const T shift = largest == minus_infinity ? 0 : largest;
  T sum = 0;
  for (extent j = 0; j < columns; ++j) sum += row[j] = std::exp(row[j] - shift);
  if (sum == 0) return minus_infinity;
  for (extent j = 0; j < columns; ++j) row[j] /= sum;
  return largest + std::log(sum);
}

// x: (rows, columns); gamma, beta: columns or empty.
template <typename T>
std::vector<T> layer_norm(const std::vector<T>& x, const std::vector<T>& gamma,
                          const std::vector<T>& beta, T epsilon, extent columns) {
  std::vector<T> out(x.size());
  for (std::size_t row = 0; row < x.size(); row += columns) {
    T mean = 0, variance = 0;
    for (extent j = 0; j < columns; ++j) mean += x[row + j] / static_cast<T>(columns);
    for (extent j = 0; j < columns; ++j) {
      variance += (x[row + j] - mean) * (x[row + j] - mean) / static_cast<T>(columns);
    }
    for (extent j = 0; j < columns; ++j) {
      const T scaled = (x[row + j] - mean) / std::sqrt(variance + epsilon);
      out[row + j] = scaled * (gamma.empty() ? 1 : gamma[j]) + (beta.empty() ? 0 : beta[j]);
    }
  }
  return out;
}

// x: (rows, columns); gamma: columns or empty.
template <typename T>
std::vector<T> rms_norm(const std::vector<T>& x, const std::vector<T>& gamma, T epsilon,
                        extent columns) {
  std::vector<T> out(x.size());
  for (std::size_t row = 0; row < x.size(); row += columns) {
    T mean = 0;
    for (extent j = 0; j < columns; ++j) mean += x[row + j] * x[row + j] / static_cast<T>(columns);
    for (extent j = 0; j < columns; ++j) {
      out[row + j] = x[row + j] / std::sqrt(mean + epsilon) * (gamma.empty() ? 1 : gamma[j]);
    }
  }
  return out;
}

// erfc and not 1 + erf, which has no digits left where the two nearly cancel.
template <typename T>
T gelu(T x) {
  return x * std::erfc(-x / std::sqrt(T{2})) / 2;
}

template <typename T>
T gelu_tanh(T x) {
  const T slope = std::sqrt(2 / std::acos(T{-1}));
  return x * (1 + std::tanh(slope * (x + static_cast<T>(0.044715) * x * x * x))) / 2;
}

template <typename T>
T silu(T x) {
  return x / (1 + std::exp(-x));
}

// One row, in place: pair i turns by angles[i]. The pair is (i, count + i), count being that of the
// angles, or (2 i, 2 i + 1).
template <typename T>
void rotate_row(T* row, const std::vector<T>& angles, bool neighbours) {
  const std::size_t count = angles.size();
  for (std::size_t i = 0; i < count; ++i) {
    T& a = row[neighbours ? 2 * i : i];
    T& b = row[neighbours ? 2 * i + 1 : count + i];
    const T cosine = std::cos(angles[i]), sine = std::sin(angles[i]);
    const T turned = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = turned;
  }
}

struct attention_sizes {
  extent batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim;
};

template <typename T>
struct attention_result {
  std::vector<T> out;          // (batch, num_heads, query_len, value_dim)
  std::vector<T> weights;      // (batch, num_heads, query_len, key_len)
  std::vector<T> log_sum_exp;  // (batch, num_heads, query_len)
};

// What happens to a score on its way, as functions of (batch, head, query, key); see
// qkv/attention.hpp.
template <typename T>
struct attention_rules {
  using at = std::function<T(extent, extent, extent, extent)>;
  using test = std::function<bool(extent, extent, extent, extent)>;
  T scale = 1;
  T softcap = 0;                  // 0: none
  at bias;                        // empty: nothing
  at alibi;                       // slope * distance; empty: nothing
  test visible;                   // empty: everything
  std::function<T(extent)> sink;  // of a head; empty: none
  test dropped;                   // empty: nothing
  T kept = 1;                     // 1 - dropout probability

  T score(T product, extent b, extent h, extent i, extent j) const {
    const T minus_infinity = -std::numeric_limits<T>::infinity();
    if (visible && !visible(b, h, i, j)) return minus_infinity;
    T score = product * scale;
    if (softcap != 0) score = softcap * std::tanh(score / softcap);
    if (bias) {
      const T more = bias(b, h, i, j);
      score = more == minus_infinity ? more : score + more;
    }
    return alibi ? score - alibi(b, h, i, j) : score;
  }
};

// query: (batch, num_heads, query_len, head_dim), key and value: (batch, num_kv_heads, key_len,
// dim).
template <typename T>
attention_result<T> attention(const std::vector<T>& query, const std::vector<T>& key,
                              const std::vector<T>& value, const attention_sizes& sizes,
                              const attention_rules<T>& rules) {
  const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = sizes;
  const T minus_infinity = -std::numeric_limits<T>::infinity();
  attention_result<T> result;
  result.out.assign(batch * num_heads * query_len * value_dim, 0);
  result.weights.assign(batch * num_heads * query_len * key_len, 0);
  result.log_sum_exp.assign(batch * num_heads * query_len, 0);
  for (extent b = 0; b < batch; ++b) {
    for (extent h = 0; h < num_heads; ++h) {
      const extent kv_head = b * num_kv_heads + h / (num_heads / num_kv_heads);
      const T* k = key.data() + kv_head * key_len * head_dim;
      const T* v = value.data() + kv_head * key_len * value_dim;
      for (extent i = 0; i < query_len; ++i) {
        const extent row = (b * num_heads + h) * query_len + i;
        const T* q = query.data() + row * head_dim;
        // The sink is one more score, at the end of the row.
        std::vector<T> scores(key_len + 1, minus_infinity);
        bool nothing_seen = true;
        for (extent j = 0; j < key_len; ++j) {
          T product = 0;
          for (extent d = 0; d < head_dim; ++d) product += q[d] * k[j * head_dim + d];
          scores[j] = rules.score(product, b, h, i, j);
          if (scores[j] != minus_infinity) nothing_seen = false;
        }
        if (rules.sink && !nothing_seen) scores[key_len] = rules.sink(h);
        std::vector<T> weights = scores;
        result.log_sum_exp[row] = softmax_row(weights.data(), key_len + 1);
        std::copy_n(weights.begin(), key_len, result.weights.begin() + row * key_len);
        T* out = result.out.data() + row * value_dim;
        for (extent j = 0; j < key_len; ++j) {
          if (scores[j] == minus_infinity) continue;
          const bool dropped = rules.dropped && rules.dropped(b, h, i, j);
          const T weight = dropped ? 0 : weights[j] / rules.kept;
          for (extent d = 0; d < value_dim; ++d) out[d] += weight * v[j * value_dim + d];
        }
      }
    }
  }
  return result;
}

}  // namespace qkv::reference
