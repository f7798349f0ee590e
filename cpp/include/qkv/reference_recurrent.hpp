// The recurrent cells as plain loops over one sequence, beside reference.hpp; the formulas are in
// recurrent.hpp. T is float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "qkv/recurrent.hpp"

namespace qkv::reference {

// As qkv::recurrent_parameters; bx, bh and peephole may be empty.
template <typename T>
struct recurrent_weights {
  std::vector<T> wx, wh, bx, bh, peephole;
};

template <typename T>
struct recurrent_state {
  std::vector<T> h, c;
};

template <typename T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// bias + x . weight for one row.
template <typename T>
std::vector<T> project(const T* x, const std::vector<T>& weight, const std::vector<T>& bias,
                       extent depth, extent columns) {
  std::vector<T> out(columns, 0);
  if (!bias.empty()) out = bias;
  for (extent k = 0; k < depth; ++k) {
    for (extent j = 0; j < columns; ++j) out[j] += x[k] * weight[k * columns + j];
  }
  return out;
}

template <typename T>
void lstm_step(const std::vector<T>& sums, const std::vector<T>& peephole, bool own_order,
               recurrent_state<T>& state) {
  const std::size_t hidden = state.h.size();
  const std::size_t f = own_order ? 1 : 2, g = own_order ? 2 : 3, o = own_order ? 3 : 1;
  for (std::size_t j = 0; j < hidden; ++j) {
    const auto peep = [&](int gate) { return peephole.empty() ? 0 : peephole[gate * hidden + j]; };
    T& c = state.c[j];
    const T input = sigmoid(sums[j] + peep(0) * c);
    const T forget = sigmoid(sums[f * hidden + j] + peep(1) * c);
    c = forget * c + input * std::tanh(sums[g * hidden + j]);
    state.h[j] = sigmoid(sums[o * hidden + j] + peep(2) * c) * std::tanh(c);
  }
}

// from_x and from_h: the two projections with their biases, which a GRU does not always add up.
template <typename T>
void gru_step(const std::vector<T>& from_x, const std::vector<T>& from_h,
              const recurrent_weights<T>& weights, const recurrent_options& options,
              recurrent_state<T>& state) {
  const std::size_t hidden = state.h.size();
  const bool own_order = options.gate_order == recurrent_gate_order::own;
  const auto gate = [&](std::size_t at, std::size_t j) {
    return sigmoid(from_x[at * hidden + j] + from_h[at * hidden + j]);
  };
  std::vector<T> reset_state = state.h;
  for (std::size_t j = 0; j < hidden; ++j) reset_state[j] *= gate(own_order ? 0 : 1, j);
  const auto from_reset =
      project(reset_state.data(), weights.wh, weights.bh, hidden, from_h.size());
  for (std::size_t j = 0; j < hidden; ++j) {
    const std::size_t n = 2 * hidden + j;
    const T recurrent =
        options.reset_after ? gate(own_order ? 0 : 1, j) * from_h[n] : from_reset[n];
    const T update = gate(own_order ? 1 : 0, j);
    state.h[j] = (1 - update) * std::tanh(from_x[n] + recurrent) + update * state.h[j];
  }
}

// x: input_dim numbers. Changes the state.
template <typename T>
void recurrent_step(const T* x, extent input_dim, const recurrent_weights<T>& weights,
                    const recurrent_options& options, recurrent_state<T>& state) {
  const extent hidden = state.h.size(), columns = gates_of(options.cell) * hidden;
  const auto from_x = project(x, weights.wx, weights.bx, input_dim, columns);
  const auto from_h = project(state.h.data(), weights.wh, weights.bh, hidden, columns);
  std::vector<T> sums = from_x;
  for (extent j = 0; j < columns; ++j) sums[j] += from_h[j];
  switch (options.cell) {
    case recurrent_cell::rnn:
      for (extent j = 0; j < hidden; ++j) {
        state.h[j] = options.relu ? std::max(sums[j], T{0}) : std::tanh(sums[j]);
      }
      return;
    case recurrent_cell::lstm:
      return lstm_step(sums, weights.peephole, options.gate_order == recurrent_gate_order::own,
                       state);
    case recurrent_cell::gru:
      return gru_step(from_x, from_h, weights, options, state);
  }
}

// x: (length, input_dim) -> every h, (length, hidden), in time order; the state becomes the last
// one.
template <typename T>
std::vector<T> recurrent(const std::vector<T>& x, extent input_dim, extent length, bool reverse,
                         const recurrent_weights<T>& weights, const recurrent_options& options,
                         recurrent_state<T>& state) {
  const extent hidden = state.h.size();
  std::vector<T> outputs(length * hidden);
  for (extent step = 0; step < length; ++step) {
    const extent t = reverse ? length - 1 - step : step;
    recurrent_step(x.data() + t * input_dim, input_dim, weights, options, state);
    std::copy(state.h.begin(), state.h.end(), outputs.begin() + t * hidden);
  }
  return outputs;
}

}  // namespace qkv::reference
