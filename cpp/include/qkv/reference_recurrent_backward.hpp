// Backpropagation through time as plain loops over one sequence, beside the forward lines that it
// differentiates; the formulas are in recurrent.hpp. T is float or double. d_name is the gradient
// of a scalar loss by name.
#pragma once

#include "qkv/reference_recurrent.hpp"

namespace qkv::reference {

// Zeros in the shapes of `weights`, biases and peepholes even where there are none.
template <typename T>
recurrent_weights<T> zero_gradients(const recurrent_weights<T>& weights, extent columns,
                                    extent hidden) {
  return {std::vector<T>(weights.wx.size()), std::vector<T>(weights.wh.size()),
          std::vector<T>(columns), std::vector<T>(columns), std::vector<T>(3 * hidden)};
}

// Adds to d_x, d_weight and d_bias what project() passes on.
template <typename T>
void project_backward(const std::vector<T>& d_out, const T* x, const std::vector<T>& weight,
                      extent depth, T* d_x, std::vector<T>& d_weight, std::vector<T>& d_bias) {
  const extent columns = d_out.size();
  // out[j] = bias[j] + sum of x[k] weight[k][j]
  for (extent j = 0; j < columns; ++j) d_bias[j] += d_out[j];
  for (extent k = 0; k < depth; ++k) {
    T sum = 0;
    for (extent j = 0; j < columns; ++j) {
      sum += d_out[j] * weight[k * columns + j];
      d_weight[k * columns + j] += x[k] * d_out[j];
    }
    d_x[k] += sum;
  }
}

// `before`: the state that the step met. d_state: by the state after the step; becomes what passes
// to c, and zeros for h, which the sums alone go back to. Gives d_sums.
template <typename T>
std::vector<T> lstm_step_backward(const std::vector<T>& sums, const std::vector<T>& peephole,
                                  bool own_order, const recurrent_state<T>& before,
                                  recurrent_state<T>& d_state, std::vector<T>& d_peephole) {
  const std::size_t hidden = before.h.size();
  const std::size_t f = own_order ? 1 : 2, g = own_order ? 2 : 3, o = own_order ? 3 : 1;
  std::vector<T> d_sums(4 * hidden);
  for (std::size_t j = 0; j < hidden; ++j) {
    const auto peep = [&](int gate) { return peephole.empty() ? 0 : peephole[gate * hidden + j]; };
    const T c = before.c[j], d_h = d_state.h[j];
    const T input = sigmoid(sums[j] + peep(0) * c);
    const T forget = sigmoid(sums[f * hidden + j] + peep(1) * c);
    const T candidate = std::tanh(sums[g * hidden + j]);
    const T after = forget * c + input * candidate;
    const T output = sigmoid(sums[o * hidden + j] + peep(2) * after);
    // h = output tanh(after)
    const T tangent = std::tanh(after);
    const T d_output = d_h * tangent * output * (1 - output);
    T d_after = d_state.c[j] + d_h * output * (1 - tangent * tangent);
    // output = sigmoid(sum + peep(2) after)
    d_sums[o * hidden + j] = d_output;
    d_after += d_output * peep(2);
    d_peephole[2 * hidden + j] += d_output * after;
    // after = forget c + input candidate
    const T d_input = d_after * candidate * input * (1 - input);
    const T d_forget = d_after * c * forget * (1 - forget);
    d_sums[g * hidden + j] = d_after * input * (1 - candidate * candidate);
    // input = sigmoid(sum + peep(0) c), forget = sigmoid(sum + peep(1) c)
    d_sums[j] = d_input;
    d_sums[f * hidden + j] = d_forget;
    d_peephole[j] += d_input * c;
    d_peephole[hidden + j] += d_forget * c;
    d_state.c[j] = d_after * forget + d_input * peep(0) + d_forget * peep(1);
    d_state.h[j] = 0;
  }
  return d_sums;
}

// By the two projections of gru_step().
template <typename T>
struct gru_gradients {
  std::vector<T> from_x, from_h;
};

// d_h: by the state after the step; becomes what passes by from_h. Adds to d_weights what comes
// from r h where the reset gate comes before the product.
template <typename T>
gru_gradients<T> gru_step_backward(const std::vector<T>& from_x, const std::vector<T>& from_h,
                                   const recurrent_weights<T>& weights,
                                   const recurrent_options& options, const std::vector<T>& h,
                                   std::vector<T>& d_h, recurrent_weights<T>& d_weights) {
  const std::size_t hidden = h.size();
  const bool own_order = options.gate_order == recurrent_gate_order::own;
  const std::size_t r = own_order ? 0 : hidden, z = own_order ? hidden : 0, n = 2 * hidden;
  const auto gate = [&](std::size_t at) { return sigmoid(from_x[at] + from_h[at]); };
  std::vector<T> reset_state = h, d_reset_state(hidden);
  for (std::size_t j = 0; j < hidden; ++j) reset_state[j] *= gate(r + j);
  const auto from_reset =
      project(reset_state.data(), weights.wh, weights.bh, hidden, from_h.size());
  std::vector<T> d_sums(3 * hidden), d_from_h(3 * hidden), d_from_reset(3 * hidden);
  for (std::size_t j = 0; j < hidden; ++j) {
    const T reset = gate(r + j), update = gate(z + j);
    const T recurrent = options.reset_after ? reset * from_h[n + j] : from_reset[n + j];
    const T candidate = std::tanh(from_x[n + j] + recurrent);
    // h after = (1 - update) candidate + update h
    d_sums[n + j] = d_h[j] * (1 - update) * (1 - candidate * candidate);
    d_sums[z + j] = d_h[j] * (h[j] - candidate) * update * (1 - update);
    d_h[j] *= update;
    // candidate = tanh(from_x + reset from_h), or tanh(from_x + from_reset)
    (options.reset_after ? d_from_h : d_from_reset)[n + j] =
        d_sums[n + j] * (options.reset_after ? reset : 1);
  }
  // from_reset = bh + (r h) . wh, of which only the candidate's columns count
  project_backward(d_from_reset, reset_state.data(), weights.wh, hidden, d_reset_state.data(),
                   d_weights.wh, d_weights.bh);
  for (std::size_t j = 0; j < hidden; ++j) {
    const T reset = gate(r + j);
    // recurrent = reset from_h, or reset_state = reset h
    const T d_reset = options.reset_after ? d_sums[n + j] * from_h[n + j] : d_reset_state[j] * h[j];
    d_h[j] += d_reset_state[j] * reset;
    d_sums[r + j] = d_reset * reset * (1 - reset);
  }
  // reset = sigmoid(from_x + from_h), update likewise
  std::copy_n(d_sums.begin(), 2 * hidden, d_from_h.begin());
  return {d_sums, d_from_h};
}

// d_state: by the state after the step; becomes that by the state before it. Adds to d_x and to
// d_weights.
template <typename T>
void recurrent_step_backward(const T* x, extent input_dim, const recurrent_weights<T>& weights,
                             const recurrent_options& options, const recurrent_state<T>& before,
                             recurrent_state<T>& d_state, T* d_x, recurrent_weights<T>& d_weights) {
  const extent hidden = before.h.size(), columns = gates_of(options.cell) * hidden;
  const auto from_x = project(x, weights.wx, weights.bx, input_dim, columns);
  const auto from_h = project(before.h.data(), weights.wh, weights.bh, hidden, columns);
  std::vector<T> sums = from_x;
  for (extent j = 0; j < columns; ++j) sums[j] += from_h[j];
  const auto back = [&](const std::vector<T>& d_from_x, const std::vector<T>& d_from_h) {
    project_backward(d_from_x, x, weights.wx, input_dim, d_x, d_weights.wx, d_weights.bx);
    project_backward(d_from_h, before.h.data(), weights.wh, hidden, d_state.h.data(), d_weights.wh,
                     d_weights.bh);
  };
  switch (options.cell) {
    case recurrent_cell::rnn:
      for (extent j = 0; j < hidden; ++j) {
        // h = max(0, sum), or tanh(sum)
        const T h = std::tanh(sums[j]), step = sums[j] > 0 ? 1 : 0;
        sums[j] = d_state.h[j] * (options.relu ? step : 1 - h * h);
        d_state.h[j] = 0;
      }
      return back(sums, sums);
    case recurrent_cell::lstm: {
      const auto d_sums = lstm_step_backward(sums, weights.peephole,
                                             options.gate_order == recurrent_gate_order::own,
                                             before, d_state, d_weights.peephole);
      return back(d_sums, d_sums);
    }
    case recurrent_cell::gru: {
      const auto made =
          gru_step_backward(from_x, from_h, weights, options, before.h, d_state.h, d_weights);
      return back(made.from_x, made.from_h);
    }
  }
}

// x as in recurrent(), start: the state before the first step, d_outputs: (length, hidden).
// d_state: by the state after the last step; becomes that by `start`. Adds to d_weights; gives d_x.
template <typename T>
std::vector<T> recurrent_backward(const std::vector<T>& d_outputs, const std::vector<T>& x,
                                  extent input_dim, extent length, bool reverse,
                                  const recurrent_weights<T>& weights,
                                  const recurrent_options& options, const recurrent_state<T>& start,
                                  recurrent_state<T>& d_state, recurrent_weights<T>& d_weights) {
  const extent hidden = start.h.size();
  const auto time_of = [&](extent step) { return reverse ? length - 1 - step : step; };
  std::vector<recurrent_state<T>> states{start};
  for (extent step = 0; step < length; ++step) {
    states.push_back(states.back());
    recurrent_step(x.data() + time_of(step) * input_dim, input_dim, weights, options,
                   states.back());
  }
  std::vector<T> d_x(x.size());
  for (extent step = length - 1; step >= 0; --step) {
    const extent t = time_of(step);
    for (extent j = 0; j < hidden; ++j) d_state.h[j] += d_outputs[t * hidden + j];
    recurrent_step_backward(x.data() + t * input_dim, input_dim, weights, options, states[step],
                            d_state, d_x.data() + t * input_dim, d_weights);
  }
  return d_x;
}

}  // namespace qkv::reference
