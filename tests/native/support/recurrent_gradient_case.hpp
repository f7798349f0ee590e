// The gradients of one recurrent problem, by the library and by the reference.
#pragma once

#include <functional>

#include "qkv/recurrent_backward.hpp"
#include "qkv/reference_recurrent_backward.hpp"
#include "support/gradient_case.hpp"
#include "support/recurrent_case.hpp"

namespace qkv::test {

// What the loss says of the outputs; each may be empty.
template <typename T>
using recurrent_loss = recurrent_case::result_of<T>;

// Numbers that are nothing round.
inline recurrent_loss<float> some_loss(const recurrent_case& one) {
  const auto& [batch, length, input_dim, hidden] = one.sizes;
  const extent states = one.directions() * batch * hidden;
  number_source numbers(77);
  return {numbers.floats(batch * length * one.directions() * hidden), numbers.floats(states),
          numbers.floats(one.options.cell == recurrent_cell::lstm ? states : 0)};
}

// Gradients in the shapes of what they are the gradients by.
template <typename T>
struct recurrent_gradients_of {
  recurrent_values<T> by;

  static constexpr auto names = std::to_array<const char*>(
      {"d_x", "d_h0", "d_c0", "d_wx", "d_wh", "d_bx", "d_bh", "d_peephole", "d_wx of reverse",
       "d_wh of reverse", "d_bx of reverse", "d_bh of reverse", "d_peephole of reverse"});

  std::array<const std::vector<T>*, names.size()> list() const {
    const auto& [first, second] = by.weights;
    return {&by.x,      &by.h0,     &by.c0,          &first.wx,  &first.wh,
            &first.bx,  &first.bh,  &first.peephole, &second.wx, &second.wh,
            &second.bx, &second.bh, &second.peephole};
  }
  bool operator==(const recurrent_gradients_of& other) const {
    const auto ours = list(), theirs = other.list();
    return std::equal(ours.begin(), ours.end(), theirs.begin(),
                      [](const auto* a, const auto* b) { return *a == *b; });
  }
};

// Room for the gradients of a problem, full of NaN.
inline recurrent_gradients_of<float> empty_gradients(const recurrent_case& one) {
  const auto& [batch, length, input_dim, hidden] = one.sizes;
  const bool is_lstm = one.options.cell == recurrent_cell::lstm;
  const extent states = one.directions() * batch * hidden;
  const extent columns = gates_of(one.options.cell) * hidden;
  const auto filled = [](std::size_t count) { return std::vector<float>(count, quiet_nan); };
  recurrent_gradients_of<float> made;
  made.by = {filled(one.x.size()), filled(states), filled(is_lstm ? states : 0), {}};
  for (extent d = 0; d < one.directions(); ++d) {
    const auto& [wx, wh, bx, bh, peephole] = one.weights[d];
    made.by.weights[d] = {filled(wx.size()), filled(wh.size()), filled(columns), filled(columns),
                          filled(peephole.size())};
  }
  return made;
}

inline recurrent_gradients views_of(recurrent_gradients_of<float>& made,
                                    const recurrent_case& one) {
  const auto& [batch, length, input_dim, hidden] = one.sizes;
  const extent columns = gates_of(one.options.cell) * hidden;
  const auto cube = [](std::vector<float>& data, std::array<extent, 3> shape) {
    return data.empty() ? view<float, 3>{} : view<float, 3>::contiguous(data.data(), shape);
  };
  const std::array<extent, 3> state{one.directions(), batch, hidden};
  recurrent_gradients to{cube(made.by.x, {batch, length, input_dim}),
                         cube(made.by.h0, state),
                         cube(made.by.c0, state),
                         {}};
  for (extent d = 0; d < one.directions(); ++d) {
    auto& [wx, wh, bx, bh, peephole] = made.by.weights[d];
    to.d_parameters[d] = {view<float, 2>::contiguous(wx.data(), {input_dim, columns}),
                          view<float, 2>::contiguous(wh.data(), {hidden, columns}), bx.data(),
                          bh.data(), peephole.empty() ? nullptr : peephole.data()};
  }
  return to;
}

inline recurrent_output_gradients views_of(const recurrent_loss<float>& loss,
                                           const recurrent_case& one) {
  const auto& [batch, length, input_dim, hidden] = one.sizes;
  const auto cube = [](const std::vector<float>& data, std::array<extent, 3> shape) {
    return data.empty() ? view<const float, 3>{}
                        : view<const float, 3>::contiguous(data.data(), shape);
  };
  const std::array<extent, 3> state{one.directions(), batch, hidden};
  return {cube(loss.outputs, {batch, length, one.directions() * hidden}), cube(loss.h, state),
          cube(loss.c, state)};
}

// Takes away what is not wanted.
using choice = std::function<void(recurrent_gradients&)>;

inline recurrent_gradients_of<float> run_backward(const recurrent_case& one,
                                                  const recurrent_loss<float>& loss,
                                                  int threads = 1, const choice& choose = {}) {
  std::vector<float> trace(recurrent_trace_bytes(one.sizes, one.options) / sizeof(float),
                           quiet_nan);
  one.run(threads, trace.data());
  auto made = empty_gradients(one);
  recurrent_gradients to = views_of(made, one);
  if (choose) choose(to);
  thread_pool pool(threads);
  scratch memory(recurrent_backward_workspace_bytes(one.sizes, one.options, pool.size()));
  REQUIRE_EQ(recurrent_backward(one.inputs(), one.parameters(), one.options, trace.data(),
                                views_of(loss, one), to, memory, pool),
             status::ok);
  return made;
}

// By everything, also by biases, peepholes and first states that are not there.
template <typename T>
recurrent_gradients_of<T> reference_gradients(const recurrent_case& one,
                                              const recurrent_values<T>& given,
                                              const recurrent_loss<T>& loss) {
  const auto [batch, length, input_dim, hidden] = one.sizes;
  const extent width = one.directions() * hidden;
  recurrent_gradients_of<T> made;
  made.by.x.resize(given.x.size());
  for (extent d = 0; d < one.directions(); ++d) {
    auto& d_weights = made.by.weights[d];
    d_weights =
        reference::zero_gradients(given.weights[d], gates_of(one.options.cell) * hidden, hidden);
    for (extent b = 0; b < batch; ++b) {
      const extent row = d * batch + b;
      const reference::recurrent_state<T> start{given.state(given.h0, row, hidden),
                                                given.state(given.c0, row, hidden)};
      reference::recurrent_state<T> d_state{given.state(loss.h, row, hidden),
                                            given.state(loss.c, row, hidden)};
      std::vector<T> d_outputs(length * hidden);
      for (extent t = 0; t < length && !loss.outputs.empty(); ++t) {
        std::copy_n(loss.outputs.begin() + (b * length + t) * width + d * hidden, hidden,
                    d_outputs.begin() + t * hidden);
      }
      const auto x = given.x.begin() + b * length * input_dim;
      const auto d_x = reference::recurrent_backward(
          d_outputs, {x, x + length * input_dim}, input_dim, one.length_of(b), one.is_reverse(d),
          given.weights[d], one.options, start, d_state, d_weights);
      for (extent i = 0; i < length * input_dim; ++i) {
        made.by.x[b * length * input_dim + i] += d_x[i];
      }
      made.by.h0.insert(made.by.h0.end(), d_state.h.begin(), d_state.h.end());
      if (one.options.cell == recurrent_cell::lstm) {
        made.by.c0.insert(made.by.c0.end(), d_state.c.begin(), d_state.c.end());
      }
    }
  }
  return made;
}

// The same problem with its input and hidden dimensions, or its sequences, in falling order; so are
// the gradients, which are turned back in the same way.
template <typename T>
void turn_dims(recurrent_values<T>& values, const recurrent_sizes& sizes) {
  const extent hidden = sizes.hidden;
  reverse_rows(values.x, sizes.input_dim);
  reverse_rows(values.h0, hidden);
  reverse_rows(values.c0, hidden);
  for (auto& [wx, wh, bx, bh, peephole] : values.weights) {
    const extent columns = wh.size() / hidden;
    for (auto* of : {&wx, &wh, &bx, &bh, &peephole}) reverse_rows(*of, hidden);
    if (!wx.empty()) reverse_lengths(wx, sizes.input_dim, columns);
    if (!wh.empty()) reverse_lengths(wh, hidden, columns);
  }
}

template <typename T>
void turn_sequences(recurrent_values<T>& values, const recurrent_sizes& sizes) {
  reverse_lengths(values.x, sizes.batch, sizes.length * sizes.input_dim);
  reverse_lengths(values.h0, sizes.batch, sizes.hidden);
  reverse_lengths(values.c0, sizes.batch, sizes.hidden);
}

// The plain loop, and the same sums in other orders, which are as good as the first.
constexpr int plain_time_orders = 8;

inline recurrent_gradients_of<float> plain_order(int number, recurrent_case one,
                                                 recurrent_loss<float> loss) {
  const bool dims = number & 1, sequences = number & 2, one_bias = number & 4;
  if (dims) {
    turn_dims(one, one.sizes);
    for (auto* of : {&loss.outputs, &loss.h, &loss.c}) reverse_rows(*of, one.sizes.hidden);
  }
  if (sequences) {
    turn_sequences(one, one.sizes);
    std::reverse(one.lengths.begin(), one.lengths.end());
    reverse_lengths(loss.outputs, one.sizes.batch,
                    one.sizes.length * one.directions() * one.sizes.hidden);
    reverse_lengths(loss.h, one.sizes.batch, one.sizes.hidden);
    reverse_lengths(loss.c, one.sizes.batch, one.sizes.hidden);
  }
  // A GRU's n may need its biases apart.
  const extent gates = one.options.cell == recurrent_cell::gru ? 2 : gates_of(one.options.cell);
  const extent joined = one_bias ? gates * one.sizes.hidden : 0;
  for (auto& weights : one.weights) {
    for (extent j = 0; j < joined && !weights.bx.empty() && !weights.bh.empty(); ++j) {
      weights.bx[j] += weights.bh[j];
      weights.bh[j] = 0;
    }
  }
  auto made = reference_gradients<float>(one, one, loss);
  if (sequences) turn_sequences(made.by, one.sizes);
  if (dims) turn_dims(made.by, one.sizes);
  return made;
}

// As exact as the plain float loop, in every gradient. Sums that are next to nothing but rounding
// may be right by luck, which gradients of few numbers often are: so the worst of several problems
// and orders counts.
class recurrent_gradient_errors {
 public:
  void add(const recurrent_case& one, const recurrent_loss<float>& loss) {
    const auto made = run_backward(one, loss);
    const auto exact = reference_gradients(
        one, one.values<double>(),
        recurrent_loss<double>{to_double(loss.outputs), to_double(loss.h), to_double(loss.c)});
    for (std::size_t i = 0; i < errors_.size(); ++i) {
      if (made.list()[i]->empty()) continue;  // not there, so not asked for
      errors_[i] = std::max(errors_[i], largest_error(*made.list()[i], *exact.list()[i]));
    }
    for (int number = 0; number < plain_time_orders && (number == 0 || !fine()); ++number) {
      const auto plain = plain_order(number, one, loss);
      for (std::size_t i = 0; i < errors_.size(); ++i) {
        allowed_[i] = std::max(allowed_[i], allowed_error(*plain.list()[i], *exact.list()[i]));
      }
    }
  }

  void check() const {
    for (std::size_t i = 0; i < errors_.size(); ++i) {
      CAPTURE(std::string(recurrent_gradients_of<float>::names[i]));
      CHECK_LE(errors_[i], allowed_[i]);
    }
  }

 private:
  bool fine() const {
    return std::equal(errors_.begin(), errors_.end(), allowed_.begin(), std::less_equal());
  }

  std::array<double, recurrent_gradients_of<float>::names.size()> errors_{}, allowed_{};
};

}  // namespace qkv::test
