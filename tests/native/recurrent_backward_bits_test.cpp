// What changes no bit of gradients through time.
#include <numeric>

#include "qkv/recurrent_backward.hpp"
#include "support/recurrent_gradient_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

// A copy with `gap` more numbers behind each row; a gradient's rows are left out.
struct spread {
  std::vector<float> numbers;

  template <typename T, int Rank>
  view<T, Rank> of(const view<T, Rank>& from, bool copy) {
    constexpr extent gap = 3;
    const extent columns = from.shape[Rank - 1], wide = columns + gap;
    const extent rows =
        std::accumulate(from.shape.begin(), from.shape.end() - 1, extent{1}, std::multiplies<>());
    numbers.assign(rows * wide, quiet_nan);
    view<T, Rank> made{numbers.data(), from.shape, from.strides};
    for (int axis = 0; axis < Rank - 1; ++axis) {
      made.strides[axis] = from.strides[axis] / columns * wide;
    }
    for (extent r = 0; copy && r < rows; ++r) {
      std::copy_n(from.data + r * columns, columns, numbers.begin() + r * wide);
    }
    return made;
  }

  std::vector<float> without_gaps(extent columns) const {
    std::vector<float> rows;
    for (std::size_t at = 0; at < numbers.size(); at += columns + 3) {
      rows.insert(rows.end(), numbers.begin() + at, numbers.begin() + at + columns);
      for (extent i = 0; i < 3; ++i) CHECK(std::isnan(numbers[at + columns + i]));
    }
    return rows;
  }
};
}  // namespace

TEST_CASE("a trace changes no bit of the outputs") {
  for (const recurrent_options& options : every_recurrent_option()) {
    for (extent batch : {1, 9}) {
      recurrent_case one({batch, 7, 5, 33}, options, 4);
      one.set_ragged();
      std::vector<float> trace(recurrent_trace_bytes(one.sizes, options) / sizeof(float));
      CHECK(one.run(1, trace.data()) == one.run());
    }
  }
}

TEST_CASE("gradients through time have the same bits for any threads, whatever is wanted") {
  for (const recurrent_options& options : every_recurrent_option()) {
    CAPTURE(options);
    recurrent_case one({20, 11, 7, 33}, options, 5);
    one.set_ragged();
    const auto loss = some_loss(one);
    const auto expected = run_backward(one, loss);
    for (int threads : {2, 3, 8}) CHECK(run_backward(one, loss, threads) == expected);

    // Every second one, then the others.
    for (bool first : {true, false}) {
      auto made = run_backward(one, loss, 1, [&](recurrent_gradients& to) {
        (first ? to.d_x : to.d_h0) = {};
        if (!first) to.d_c0 = {};
        for (auto& of : to.d_parameters) {
          (first ? of.d_wx : of.d_wh) = {};
          (first ? of.d_bh : of.d_bx) = nullptr;
          if (first) of.d_peephole = nullptr;
        }
      });
      extent unwritten = 0;
      for (std::size_t i = 0; i < made.names.size(); ++i) {
        const auto& own = *made.list()[i];
        if (own.empty()) continue;
        if (std::isnan(own[0])) {
          ++unwritten;
        } else {
          CHECK_EQ(own, *expected.list()[i]);
        }
      }
      const extent lstm = options.cell == recurrent_cell::lstm ? 1 : 0;
      CHECK_EQ(unwritten, 1 + (first ? 0 : lstm) + one.directions() * (2 + (first ? lstm : 0)));
    }
  }
}

TEST_CASE("gradients by a sequence have the same bits in a batch and alone") {
  for (const recurrent_options& options : every_recurrent_option()) {
    CAPTURE(options);
    recurrent_case batch({20, 11, 7, 33}, options, 5);
    batch.set_ragged();
    const auto loss = some_loss(batch);
    const auto expected = run_backward(batch, loss);
    const extent b = 13, length = batch.lengths[b], width = batch.directions() * 33;
    recurrent_case alone({1, length, 7, 33}, options, 5);
    recurrent_loss<float> alone_loss;
    const auto steps = [&](const std::vector<float>& from, extent columns) {
      const auto begin = from.begin() + b * 11 * columns;
      return std::vector<float>(begin, begin + length * columns);
    };
    const auto states = [&](const std::vector<float>& from) {
      std::vector<float> taken;
      for (extent d = 0; d < batch.directions() && !from.empty(); ++d) {
        const auto begin = from.begin() + (d * 20 + b) * 33;
        taken.insert(taken.end(), begin, begin + 33);
      }
      return taken;
    };
    alone.x = steps(batch.x, 7);
    alone.h0 = states(batch.h0);
    alone.c0 = states(batch.c0);
    std::copy(std::begin(batch.weights), std::end(batch.weights), alone.weights);
    const auto made =
        run_backward(alone, {steps(loss.outputs, width), states(loss.h), states(loss.c)});
    CHECK_EQ(made.by.x, steps(expected.by.x, 7));
    CHECK_EQ(made.by.h0, states(expected.by.h0));
    CHECK_EQ(made.by.c0, states(expected.by.c0));
  }
}

TEST_CASE(
    "gradients through time have the same bits with gaps between rows, which stay as they are") {
  for (recurrent_cell cell : recurrent_cells) {
    for (bool reset_after : {false, true}) {
      recurrent_case one({3, 4, 5, 6}, {.cell = cell, .reset_after = reset_after}, 9);
      const auto loss = some_loss(one);
      const auto expected = run_backward(one, loss);
      std::vector<float> trace(recurrent_trace_bytes(one.sizes, one.options) / sizeof(float));
      one.run(1, trace.data());
      auto made = empty_gradients(one);
      recurrent_inputs inputs = one.inputs();
      auto parameters = one.parameters();
      recurrent_output_gradients d_outputs = views_of(loss, one);
      recurrent_gradients to = views_of(made, one);
      spread memory[9];
      inputs.x = memory[0].of(inputs.x, true);
      parameters[0].wx = memory[1].of(parameters[0].wx, true);
      parameters[0].wh = memory[2].of(parameters[0].wh, true);
      d_outputs.d_outputs = memory[3].of(d_outputs.d_outputs, true);
      d_outputs.d_h = memory[4].of(d_outputs.d_h, true);
      to.d_x = memory[5].of(to.d_x, false);
      to.d_h0 = memory[6].of(to.d_h0, false);
      to.d_parameters[0].d_wx = memory[7].of(to.d_parameters[0].d_wx, false);
      to.d_parameters[0].d_wh = memory[8].of(to.d_parameters[0].d_wh, false);
      thread_pool pool(1);
      scratch bytes(recurrent_backward_workspace_bytes(one.sizes, one.options, 1));
      REQUIRE_EQ(recurrent_backward(inputs, parameters, one.options, trace.data(), d_outputs, to,
                                    bytes, pool),
                 status::ok);
      const extent columns = gates_of(cell) * 6;
      CHECK_EQ(memory[5].without_gaps(5), expected.by.x);
      CHECK_EQ(memory[6].without_gaps(6), expected.by.h0);
      CHECK_EQ(memory[7].without_gaps(columns), expected.by.weights[0].wx);
      CHECK_EQ(memory[8].without_gaps(columns), expected.by.weights[0].wh);
    }
  }
}

TEST_CASE("what lies beyond a sequence's length has no effect on gradients") {
  for (const recurrent_options& options : every_recurrent_option()) {
    recurrent_case one({3, 6, 4, 8}, options, 7);
    one.lengths = {6, 2, 0};
    auto loss = some_loss(one);
    const auto expected = run_backward(one, loss);
    const extent width = one.directions() * 8;
    for (extent b = 0; b < 3; ++b) {
      const extent begin = b * 6 + one.lengths[b], end = (b + 1) * 6;
      std::fill(one.x.begin() + begin * 4, one.x.begin() + end * 4, quiet_nan);
      std::fill(loss.outputs.begin() + begin * width, loss.outputs.begin() + end * width,
                quiet_nan);
    }
    CHECK(run_backward(one, loss) == expected);
    for (extent b = 0; b < 3; ++b) {
      for (extent i = (b * 6 + one.lengths[b]) * 4; i < (b + 1) * 6 * 4; ++i) {
        CHECK_EQ(expected.by.x[i], 0);
      }
    }
  }
}
