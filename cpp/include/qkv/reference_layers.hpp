// The gradients of the building blocks as plain loops, beside the forward lines that they
// differentiate. T is float or double; everything is contiguous and row-major. d_name is the
// gradient of a scalar loss by name; d_out is what the loss says of the operation's result.
#pragma once

#include "qkv/reference.hpp"

namespace qkv::reference {

template <typename T>
struct linear_gradients {
  std::vector<T> d_x, d_weight, d_bias;
};

// Shapes as in linear(); d_out: (rows, out_dim).
template <typename T>
linear_gradients<T> linear_backward(const std::vector<T>& d_out, const std::vector<T>& x,
                                    const std::vector<T>& weight, extent rows, extent in_dim,
                                    extent out_dim) {
  linear_gradients<T> made{std::vector<T>(rows * in_dim), std::vector<T>(in_dim * out_dim),
                           std::vector<T>(out_dim)};
  for (extent r = 0; r < rows; ++r) {
    for (extent j = 0; j < out_dim; ++j) {
      const T gradient = d_out[r * out_dim + j];
      for (extent k = 0; k < in_dim; ++k) {
        // sum += x[r][k] * weight[k][j]
        made.d_x[r * in_dim + k] += weight[k * out_dim + j] * gradient;
        made.d_weight[k * out_dim + j] += x[r * in_dim + k] * gradient;
      }
      // out[r][j] = sum + bias[j]
      made.d_bias[j] += gradient;
    }
  }
  return made;
}

// x, d_out: one row -> d_x. What is -Infinity has no weight, whatever its d_out.
template <typename T>
std::vector<T> softmax_row_backward(const std::vector<T>& d_out, const std::vector<T>& x) {
  std::vector<T> d_x(x.size()), out = x;
  softmax_row(out.data(), static_cast<extent>(x.size()));
  // out[j] = exp(x[j]) / total, total = sum of exp(x[k]):
  // d out[k] / d x[j] = out[k] ([k = j] - out[j])
  T product = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (x[k] != -std::numeric_limits<T>::infinity()) product += out[k] * d_out[k];
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (x[j] != -std::numeric_limits<T>::infinity()) d_x[j] = out[j] * (d_out[j] - product);
  }
  return d_x;
}

template <typename T>
struct norm_gradients {
  std::vector<T> d_x, d_gamma, d_beta;
};

// Shapes as in layer_norm().
template <typename T>
norm_gradients<T> layer_norm_backward(const std::vector<T>& d_out, const std::vector<T>& x,
                                      const std::vector<T>& gamma, T epsilon, extent columns) {
  norm_gradients<T> made{std::vector<T>(x.size()), std::vector<T>(columns),
                         std::vector<T>(columns)};
  const T count = static_cast<T>(columns);
  for (std::size_t row = 0; row < x.size(); row += columns) {
    T mean = 0, variance = 0;
    for (extent j = 0; j < columns; ++j) mean += x[row + j] / count;
    for (extent j = 0; j < columns; ++j) {
      variance += (x[row + j] - mean) * (x[row + j] - mean) / count;
    }
    const T root = std::sqrt(variance + epsilon);
    std::vector<T> scaled(columns), d_scaled(columns);
    T mean_gradient = 0, mean_product = 0;
    for (extent j = 0; j < columns; ++j) {
      // out[j] = scaled[j] * gamma[j] + beta[j]
      scaled[j] = (x[row + j] - mean) / root;
      made.d_beta[j] += d_out[row + j];
      made.d_gamma[j] += d_out[row + j] * scaled[j];
      d_scaled[j] = d_out[row + j] * (gamma.empty() ? 1 : gamma[j]);
      mean_gradient += d_scaled[j] / count;
      mean_product += d_scaled[j] * scaled[j] / count;
    }
    for (extent j = 0; j < columns; ++j) {
      // scaled[j] = (x[j] - mean) / root: by x[j] itself, through the mean, and through the root
      made.d_x[row + j] = (d_scaled[j] - mean_gradient - scaled[j] * mean_product) / root;
    }
  }
  return made;
}

// Shapes as in rms_norm(); d_beta is empty.
template <typename T>
norm_gradients<T> rms_norm_backward(const std::vector<T>& d_out, const std::vector<T>& x,
                                    const std::vector<T>& gamma, T epsilon, extent columns) {
  norm_gradients<T> made{std::vector<T>(x.size()), std::vector<T>(columns), {}};
  const T count = static_cast<T>(columns);
  for (std::size_t row = 0; row < x.size(); row += columns) {
    T mean = 0;
    for (extent j = 0; j < columns; ++j) mean += x[row + j] * x[row + j] / count;
    const T root = std::sqrt(mean + epsilon);
    std::vector<T> scaled(columns), d_scaled(columns);
    T mean_product = 0;
    for (extent j = 0; j < columns; ++j) {
      // out[j] = scaled[j] * gamma[j]
      scaled[j] = x[row + j] / root;
      made.d_gamma[j] += d_out[row + j] * scaled[j];
      d_scaled[j] = d_out[row + j] * (gamma.empty() ? 1 : gamma[j]);
      mean_product += d_scaled[j] * scaled[j] / count;
    }
    for (extent j = 0; j < columns; ++j) {
      // scaled[j] = x[j] / root: by x[j] itself, and through the root
      made.d_x[row + j] = (d_scaled[j] - scaled[j] * mean_product) / root;
    }
  }
  return made;
}

// d gelu(x) / dx: x times the share of the normal distribution below x, by both factors.
template <typename T>
T gelu_slope(T x) {
  const T density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(T{-1}));
  return std::erfc(-x / std::sqrt(T{2})) / 2 + x * density;
}

template <typename T>
T gelu_tanh_slope(T x) {
  // gelu_tanh(x) = x * (1 + tanh(inner)) / 2
  const T slope = std::sqrt(2 / std::acos(T{-1})), cubic = static_cast<T>(0.044715);
  const T outer = std::tanh(slope * (x + cubic * x * x * x));
  const T d_inner = slope * (1 + 3 * cubic * x * x);
  return (1 + outer) / 2 + x * (1 - outer * outer) * d_inner / 2;
}

template <typename T>
T silu_slope(T x) {
  // silu(x) = x * sigmoid(x)
  const T sigmoid = 1 / (1 + std::exp(-x));
  return sigmoid + x * sigmoid * (1 - sigmoid);
}

// One row of d_out becomes that of d_x, in place; arguments as in rotate_row().
template <typename T>
void rotate_row_backward(T* row, const std::vector<T>& angles, bool neighbours) {
  const std::size_t count = angles.size();
  for (std::size_t i = 0; i < count; ++i) {
    T& a = row[neighbours ? 2 * i : i];
    T& b = row[neighbours ? 2 * i + 1 : count + i];
    const T cosine = std::cos(angles[i]), sine = std::sin(angles[i]);
    // turned = (a * cosine - b * sine, a * sine + b * cosine)
    const T d_a = a * cosine + b * sine;
    b = b * cosine - a * sine;
    a = d_a;
  }
}

// d_out: (count, dim) -> d_table: (rows, dim)
template <typename T>
std::vector<T> embedding_backward(const std::vector<T>& d_out,
                                  const std::vector<std::int32_t>& indices, extent rows,
                                  extent dim) {
  std::vector<T> d_table(rows * dim);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    // out[i] = table[indices[i]]
    for (extent j = 0; j < dim; ++j) d_table[indices[i] * dim + j] += d_out[i * dim + j];
  }
  return d_table;
}

template <typename T>
struct cross_entropy_result {
  T loss = 0;
  std::vector<T> d_logits;  // (rows, classes)
};

// logits: (rows, classes), targets: a class for each row. The mean over the rows of
// -log softmax(logits)[target].
template <typename T>
cross_entropy_result<T> cross_entropy(const std::vector<T>& logits,
                                      const std::vector<std::int32_t>& targets, extent classes) {
  cross_entropy_result<T> made{0, logits};
  const T rows = static_cast<T>(targets.size());
  for (std::size_t r = 0; r < targets.size(); ++r) {
    T* row = made.d_logits.data() + r * classes;
    const T logit = row[targets[r]];
    // loss += (log_sum_exp - logit) / rows; by a logit, log_sum_exp has the softmax
    made.loss += (softmax_row(row, classes) - logit) / rows;
    for (extent j = 0; j < classes; ++j) row[j] = (row[j] - (j == targets[r] ? 1 : 0)) / rows;
  }
  return made;
}

template <typename T>
struct adam_moments {
  std::vector<T> mean, square;
};

struct adam_settings {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
  double clip;  // Infinity: none
};

// Step number `step`, from 1, of Adam with decoupled weight decay; see qkv/adam.hpp.
template <typename T>
void adam_step(std::vector<T>& parameters, const std::vector<T>& gradients,
               adam_moments<T>& moments, const adam_settings& settings, int step) {
  const T beta1 = static_cast<T>(settings.beta1), beta2 = static_cast<T>(settings.beta2);
  const T rate = static_cast<T>(settings.learning_rate);
  const T epsilon = static_cast<T>(settings.epsilon), clip = static_cast<T>(settings.clip);
  const T decay = static_cast<T>(settings.weight_decay);
  const T correction1 = 1 - std::pow(beta1, static_cast<T>(step));
  const T correction2 = 1 - std::pow(beta2, static_cast<T>(step));
  T norm = 0;
  for (T gradient : gradients) norm += gradient * gradient;
  norm = std::sqrt(norm);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const T gradient = norm > clip ? gradients[i] * (clip / norm) : gradients[i];
    T& mean = moments.mean[i];
    T& square = moments.square[i];
    mean = beta1 * mean + (1 - beta1) * gradient;
    square = beta2 * square + (1 - beta2) * gradient * gradient;
    parameters[i] -= rate * decay * parameters[i];
    parameters[i] -= rate * (mean / correction1) / (std::sqrt(square / correction2) + epsilon);
  }
}

}  // namespace qkv::reference
