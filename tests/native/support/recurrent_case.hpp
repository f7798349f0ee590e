// One recurrent problem with its memory, run by the library and by the reference.
#pragma once

#include <vector>

#include "qkv/recurrent.hpp"
#include "qkv/reference_recurrent.hpp"
#include "support/doctest.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

// As CAPTURE() shows them.
template <>
struct doctest::StringMaker<qkv::recurrent_options> {
  static String convert(const qkv::recurrent_options& options) {
    const auto number = [](auto choice) { return toString(static_cast<int>(choice)); };
    return "cell " + number(options.cell) + ", direction " + number(options.direction) +
           ", gate order " + number(options.gate_order) + ", reset after " +
           toString(options.reset_after) + ", relu " + toString(options.relu);
  }
};

namespace qkv::test {

template <typename T>
std::vector<T> as(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

inline constexpr recurrent_cell recurrent_cells[] = {recurrent_cell::rnn, recurrent_cell::lstm,
                                                     recurrent_cell::gru};
inline constexpr recurrent_direction recurrent_directions[] = {
    recurrent_direction::forward, recurrent_direction::reverse, recurrent_direction::both};

// Every cell with every option that is its own.
inline std::vector<recurrent_options> every_recurrent_option() {
  std::vector<recurrent_options> all;
  for (recurrent_direction direction : recurrent_directions) {
    for (bool flag : {false, true}) {
      recurrent_options rnn{.cell = recurrent_cell::rnn, .direction = direction, .relu = flag};
      all.push_back(rnn);
      for (auto order : {recurrent_gate_order::own, recurrent_gate_order::onnx}) {
        all.push_back({.cell = recurrent_cell::gru,
                       .direction = direction,
                       .gate_order = order,
                       .reset_after = flag});
      }
      all.push_back({.cell = recurrent_cell::lstm,
                     .direction = direction,
                     .gate_order = flag ? recurrent_gate_order::onnx : recurrent_gate_order::own});
    }
  }
  return all;
}

// All that a problem may be changed in.
template <typename T>
struct recurrent_values {
  std::vector<T> x, h0, c0;
  reference::recurrent_weights<T> weights[2];

  // A state of a direction and a sequence; zeros where there is none.
  static std::vector<T> state(const std::vector<T>& states, extent row, extent hidden) {
    std::vector<T> one(hidden, 0);
    if (!states.empty()) std::copy_n(states.begin() + row * hidden, hidden, one.begin());
    return one;
  }
};

struct recurrent_case : recurrent_values<float> {
  recurrent_sizes sizes;
  recurrent_options options;
  std::vector<std::int32_t> lengths;

  // With everything that the cell may have; tests take away what they do without.
  recurrent_case(const recurrent_sizes& sizes, const recurrent_options& options, std::uint64_t seed)
      : sizes(sizes), options(options) {
    const auto [batch, length, input_dim, hidden] = sizes;
    const extent columns = gates_of(options.cell) * hidden;
    const extent states = directions_of(options.direction) * batch * hidden;
    const bool is_lstm = options.cell == recurrent_cell::lstm;
    number_source numbers(seed);
    x = numbers.floats(batch * length * input_dim);
    h0 = numbers.floats(states);
    if (is_lstm) c0 = numbers.floats(states);
    for (auto& one : weights) {
      one.wx = numbers.floats(input_dim * columns, 1 / std::sqrt(input_dim + 1.0));
      one.wh = numbers.floats(hidden * columns, 1 / std::sqrt(hidden + 1.0));
      one.bx = numbers.floats(columns);
      one.bh = numbers.floats(columns);
      if (is_lstm) one.peephole = numbers.floats(3 * hidden);
    }
  }

  void set_ragged() {
    for (extent b = 0; b < sizes.batch; ++b) {
      lengths.push_back(static_cast<std::int32_t>((b * 7 + 3) % (sizes.length + 1)));
    }
  }

  extent directions() const { return directions_of(options.direction); }
  extent length_of(extent b) const { return lengths.empty() ? sizes.length : lengths[b]; }
  bool is_reverse(extent d) const {
    return d == 1 || options.direction == recurrent_direction::reverse;
  }

  template <typename T>
  struct result_of {
    std::vector<T> outputs, h, c;
    bool operator==(const result_of&) const = default;
    std::vector<T> all() const {
      std::vector<T> joined = outputs;
      joined.insert(joined.end(), h.begin(), h.end());
      joined.insert(joined.end(), c.begin(), c.end());
      return joined;
    }
  };
  using result = result_of<float>;

  std::array<recurrent_parameters, 2> parameters() const {
    const extent columns = gates_of(options.cell) * sizes.hidden;
    const auto given = [](const std::vector<float>& values) {
      return values.empty() ? nullptr : values.data();
    };
    std::array<recurrent_parameters, 2> made;
    for (int d = 0; d < 2; ++d) {
      const auto& [wx, wh, bx, bh, peephole] = weights[d];
      made[d] = {view<const float, 2>::contiguous(wx.data(), {sizes.input_dim, columns}),
                 view<const float, 2>::contiguous(wh.data(), {sizes.hidden, columns}), given(bx),
                 given(bh), given(peephole)};
    }
    return made;
  }

  recurrent_inputs inputs() const {
    const std::array<extent, 3> state_shape{directions(), sizes.batch, sizes.hidden};
    const auto start = [&](const std::vector<float>& values) {
      return values.empty() ? view<const float, 3>{}
                            : view<const float, 3>::contiguous(values.data(), state_shape);
    };
    return {
        view<const float, 3>::contiguous(x.data(), {sizes.batch, sizes.length, sizes.input_dim}),
        start(h0), start(c0), lengths.empty() ? nullptr : lengths.data()};
  }

  result run(int threads = 1, float* trace = nullptr) const {
    const auto [batch, length, input_dim, hidden] = sizes;
    const std::array<extent, 3> state_shape{directions(), batch, hidden};
    const bool is_lstm = options.cell == recurrent_cell::lstm;
    const extent states = directions() * batch * hidden;
    result made{std::vector<float>(batch * length * directions() * hidden, quiet_nan),
                std::vector<float>(states, quiet_nan),
                std::vector<float>(is_lstm ? states : 0, quiet_nan)};
    const auto state = [&](auto& values) {
      return values.empty() ? view<float, 3>{}
                            : view<float, 3>::contiguous(values.data(), state_shape);
    };
    thread_pool pool(threads);
    scratch memory(recurrent_workspace_bytes(sizes, options, pool.size()));
    REQUIRE_EQ(recurrent_forward(inputs(), parameters(), options,
                                 {view<float, 3>::contiguous(
                                      made.outputs.data(), {batch, length, directions() * hidden}),
                                  state(made.h), state(made.c), trace},
                                 memory, pool),
               status::ok);
    return made;
  }

  template <typename T>
  recurrent_values<T> values() const {
    recurrent_values<T> made{as<T>(x), as<T>(h0), as<T>(c0), {}};
    for (int d = 0; d < 2; ++d) {
      const auto& [wx, wh, bx, bh, peephole] = weights[d];
      made.weights[d] = {as<T>(wx), as<T>(wh), as<T>(bx), as<T>(bh), as<T>(peephole)};
    }
    return made;
  }

  template <typename T>
  result_of<T> reference() const {
    return reference_of(values<T>());
  }

  template <typename T>
  result_of<T> reference_of(const recurrent_values<T>& given) const {
    const auto [batch, length, input_dim, hidden] = sizes;
    const extent width = directions() * hidden;
    result_of<T> made{std::vector<T>(batch * length * width, 0), {}, {}};
    for (extent d = 0; d < directions(); ++d) {
      for (extent b = 0; b < batch; ++b) {
        reference::recurrent_state<T> state{given.state(given.h0, d * batch + b, hidden),
                                            given.state(given.c0, d * batch + b, hidden)};
        const auto row = given.x.begin() + b * length * input_dim;
        const auto outputs =
            reference::recurrent({row, row + length * input_dim}, input_dim, length_of(b),
                                 is_reverse(d), given.weights[d], options, state);
        for (extent t = 0; t < length_of(b); ++t) {
          std::copy_n(outputs.begin() + t * hidden, hidden,
                      made.outputs.begin() + (b * length + t) * width + d * hidden);
        }
        made.h.insert(made.h.end(), state.h.begin(), state.h.end());
        if (options.cell == recurrent_cell::lstm) {
          made.c.insert(made.c.end(), state.c.begin(), state.c.end());
        }
      }
    }
    return made;
  }

  // As exact as the plain float loop, in every result.
  void check() const {
    const auto made = run();
    const auto plain = reference<float>();
    const auto exact = reference<double>();
    check_near(made.outputs, plain.outputs, exact.outputs);
    check_near(made.h, plain.h, exact.h);
    check_near(made.c, plain.c, exact.c);
  }
};

}  // namespace qkv::test
