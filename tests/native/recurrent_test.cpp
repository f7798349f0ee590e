#include "qkv/recurrent.hpp"

#include "support/recurrent_case.hpp"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("recurrent cells are right with every option, over batches and sizes") {
  for (const recurrent_options& options : every_recurrent_option()) {
    for (extent batch : {1, 3, 9}) {
      for (extent hidden : {1, 4, 9, 33}) {
        CAPTURE(options);
        CAPTURE(batch);
        CAPTURE(hidden);
        recurrent_case one({batch, 7, 5, hidden}, options, 1);
        one.check();
        one.set_ragged();
        one.check();
      }
    }
  }
}

TEST_CASE("recurrent cells are right for hidden sizes of whole panels and sums of several blocks") {
  for (recurrent_cell cell : recurrent_cells) {
    for (extent hidden : {32, 64, 70, 300}) {
      for (extent length : {1, 2, 3, 70}) {
        CAPTURE(static_cast<int>(cell));
        CAPTURE(hidden);
        CAPTURE(length);
        recurrent_case({1, length, 300, hidden}, {.cell = cell}, 2).check();
      }
    }
  }
}

TEST_CASE("recurrent cells start from zeros and without biases where none are given") {
  for (recurrent_cell cell : recurrent_cells) {
    for (bool reset_after : {false, true}) {
      recurrent_case one({3, 7, 5, 10}, {.cell = cell, .reset_after = reset_after}, 3);
      one.h0.clear();
      one.c0.clear();
      one.weights[0].bx.clear();
      one.check();
      one.weights[0].bh.clear();
      one.weights[0].peephole.clear();
      one.check();
    }
  }
}

TEST_CASE("one step of rnn follows the formula, in both directions") {
  // h = tanh(0.5 x + 0.5 h) over x = 1, 2, 3.
  recurrent_case one({1, 3, 1, 1}, {.direction = recurrent_direction::both}, 0);
  one.x = {1, 2, 3};
  one.h0.clear();
  for (auto& weights : one.weights) weights = {{0.5}, {0.5}, {}, {}, {}};
  const auto made = one.run();
  CHECK_LE(largest_error(made.outputs,
                         {0.46211716, 0.73892161, 0.84288614, 0.89620130, 0.95803600, 0.90514825}),
           1e-6);
  CHECK_LE(largest_error(made.h, {0.95803600, 0.73892161}), 1e-6);
}

TEST_CASE("a sequence in two parts, or step by step, has the bits of the whole") {
  for (recurrent_cell cell : recurrent_cells) {
    for (extent hidden : {21, 32}) {
      CAPTURE(static_cast<int>(cell));
      CAPTURE(hidden);
      const recurrent_case whole({2, 9, 6, hidden}, {.cell = cell}, 4);
      const auto expected = whole.run();
      for (extent split : {1, 4}) {
        recurrent_case part = whole;
        std::vector<float> outputs[2];
        recurrent_case::result last;
        for (extent t = 0; t < 9; t += part.sizes.length) {
          part.sizes.length = std::min(split, 9 - t);
          part.x.clear();
          for (extent b = 0; b < 2; ++b) {
            const auto begin = whole.x.begin() + (b * 9 + t) * 6;
            part.x.insert(part.x.end(), begin, begin + part.sizes.length * 6);
          }
          last = part.run();
          const extent count = part.sizes.length * hidden;
          for (extent b = 0; b < 2; ++b) {
            outputs[b].insert(outputs[b].end(), last.outputs.begin() + b * count,
                              last.outputs.begin() + (b + 1) * count);
          }
          part.h0 = last.h;
          part.c0 = last.c;
        }
        outputs[0].insert(outputs[0].end(), outputs[1].begin(), outputs[1].end());
        CHECK_EQ(outputs[0], expected.outputs);
        CHECK_EQ(last.h, expected.h);
        CHECK_EQ(last.c, expected.c);
      }
    }
  }
}

TEST_CASE("recurrent cells have the same bits for any number of threads, in a batch or alone") {
  for (recurrent_options options : every_recurrent_option()) {
    CAPTURE(options);
    recurrent_case batch({20, 11, 7, 33}, options, 5);
    batch.set_ragged();
    const auto expected = batch.run();
    for (int threads : {2, 3, 8}) CHECK(batch.run(threads) == expected);
    const extent b = 13, width = batch.directions() * 33;
    recurrent_case alone({1, batch.lengths[b], 7, 33}, options, 5);
    alone.x.assign(&batch.x[b * 11 * 7], &batch.x[b * 11 * 7] + alone.sizes.length * 7);
    std::copy(std::begin(batch.weights), std::end(batch.weights), alone.weights);
    for (extent d = 0; d < batch.directions(); ++d) {
      const auto take = [&](std::vector<float>& to, const std::vector<float>& from) {
        if (!to.empty()) std::copy_n(from.begin() + (d * 20 + b) * 33, 33, to.begin() + d * 33);
      };
      take(alone.h0, batch.h0);
      take(alone.c0, batch.c0);
    }
    const auto made = alone.run();
    CHECK(std::equal(made.outputs.begin(), made.outputs.end(), &expected.outputs[b * 11 * width]));
    for (extent d = 0; d < batch.directions(); ++d) {
      CHECK(std::equal(&made.h[d * 33], &made.h[d * 33] + 33, &expected.h[(d * 20 + b) * 33]));
    }
  }
}

TEST_CASE("a sequence of length 0 keeps its state") {
  for (recurrent_cell cell : recurrent_cells) {
    const recurrent_case empty({2, 0, 3, 5}, {.cell = cell}, 6);
    CHECK_EQ(empty.run().h, empty.h0);
    CHECK_EQ(empty.run().c, empty.c0);
    CHECK(empty.run().outputs.empty());
    recurrent_case none({2, 4, 3, 5}, {.cell = cell}, 6);
    none.lengths = {0, 0};
    CHECK_EQ(none.run().h, none.h0);
    CHECK_EQ(none.run().outputs, std::vector<float>(2 * 4 * 5, 0.0f));
  }
}

TEST_CASE("what lies beyond a sequence's length has no effect") {
  for (recurrent_direction direction : recurrent_directions) {
    recurrent_case one({3, 6, 4, 8}, {.cell = recurrent_cell::lstm, .direction = direction}, 7);
    one.lengths = {6, 2, 0};
    const auto expected = one.run();
    for (extent b = 0; b < 3; ++b) {
      std::fill(one.x.begin() + (b * 6 + one.lengths[b]) * 4, one.x.begin() + (b + 1) * 6 * 4,
                quiet_nan);
    }
    CHECK(one.run() == expected);
  }
}

TEST_CASE("gates of large sums are exactly 0 or 1, and nothing is NaN") {
  recurrent_case one({1, 1, 1, 4}, {.cell = recurrent_cell::lstm}, 8);
  one.x = {0};
  one.h0.clear();
  one.c0 = {0.5, 0.5, 0.5, 0.5};
  auto& weights = one.weights[0];
  weights.peephole.clear();
  weights.bh.clear();
  // i f g o
  weights.bx = {-1000, -1000, 1000, 1000,  -1000, 1000, -1000, 1000,
                1000,  1000,  1000, -1000, 1000,  1000, 1000,  1000};
  const auto made = one.run();
  CHECK_EQ(made.c, std::vector<float>{0, 0.5, 1, -0.5});
}

TEST_CASE("recurrent_forward refuses what does not fit and writes nothing") {
  std::vector<float> data(200, 1.0f), out(200, 42.0f);
  thread_pool pool(1);
  const auto cube = [](float* at, extent a, extent b, extent c) {
    return view<float, 3>::contiguous(at, {a, b, c});
  };
  const auto matrix = [&](extent rows, extent columns) {
    return view<const float, 2>::contiguous(data.data(), {rows, columns});
  };
  struct call {
    recurrent_inputs inputs;
    std::array<recurrent_parameters, 2> parameters;
    recurrent_options options;
    recurrent_outputs outputs;
    std::size_t bytes;
  };
  const auto refused = [&](status expected, auto change) {
    const std::int32_t lengths[] = {4, 5};
    call one{
        {cube(data.data(), 2, 5, 3), cube(data.data(), 1, 2, 4), cube(data.data(), 1, 2, 4),
         lengths},
        {{{matrix(3, 16), matrix(4, 16)}, {}}},
        {.cell = recurrent_cell::lstm},
        {cube(out.data(), 2, 5, 4), cube(out.data() + 50, 1, 2, 4), cube(out.data() + 60, 1, 2, 4)},
        0};
    one.bytes = recurrent_workspace_bytes({2, 5, 3, 4}, one.options, 1);
    change(one);
    scratch memory(one.bytes);
    CHECK_EQ(recurrent_forward(one.inputs, one.parameters, one.options, one.outputs, memory, pool),
             expected);
    if (expected != status::ok) CHECK_EQ(out, std::vector<float>(200, 42.0f));
  };
  const status mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refused(mismatch, [&](call& one) { one.parameters[0].wx = matrix(4, 16); });
  refused(mismatch, [&](call& one) { one.parameters[0].wh = matrix(4, 12); });
  refused(mismatch, [](call& one) { one.inputs.h0.shape[0] = 2; });
  refused(mismatch, [](call& one) { one.inputs.c0.shape[1] = 1; });
  refused(mismatch, [](call& one) { one.outputs.outputs.shape[2] = 8; });
  refused(mismatch, [](call& one) { one.outputs.h.shape[2] = 3; });
  refused(mismatch, [](call& one) { one.outputs.c.shape[1] = 1; });
  refused(mismatch, [](call& one) { one.options.direction = recurrent_direction::both; });
  refused(mismatch, [](call& one) { one.options.cell = recurrent_cell::gru; });
  refused(invalid, [](call& one) { one.inputs.x.strides[2] = 2; });
  refused(invalid, [](call& one) { one.outputs.c = {}; });
  for (std::int32_t wrong : {-1, 6}) {
    const std::int32_t lengths[] = {5, wrong};
    refused(invalid, [&](call& one) { one.inputs.lengths = lengths; });
  }
  const auto as_rnn = [&](call& one) {
    one.options.cell = recurrent_cell::rnn;
    one.parameters[0] = {matrix(3, 4), matrix(4, 4)};
    one.outputs.c = {};
    one.inputs.c0 = {};
  };
  refused(invalid, [&](call& one) { as_rnn(one), one.inputs.c0 = cube(data.data(), 1, 2, 4); });
  refused(invalid, [&](call& one) { as_rnn(one), one.outputs.c = cube(out.data(), 1, 2, 4); });
  refused(invalid, [&](call& one) { as_rnn(one), one.parameters[0].peephole = data.data(); });
  for (int parts : {0, 1, 2, 3}) {
    refused(status::out_of_memory, [&](call& one) { one.bytes = one.bytes * parts / 4; });
  }
  refused(status::ok, [](call&) {});
}
