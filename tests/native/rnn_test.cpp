#include "qkv/rnn.hpp"

#include "support/attention_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

struct rnn_case {
  extent batch, length, input_dim, hidden;
  std::vector<float> x, wx, wh, bx, bh, h0;

  rnn_case(extent batch, extent length, extent input_dim, extent hidden, std::uint64_t seed)
      : batch(batch), length(length), input_dim(input_dim), hidden(hidden) {
    number_source numbers(seed);
    x = numbers.floats(batch * length * input_dim);
    wx = numbers.floats(input_dim * hidden, 1 / std::sqrt(input_dim + 1.0));
    wh = numbers.floats(hidden * hidden, 1 / std::sqrt(hidden));
    bx = numbers.floats(hidden);
    bh = numbers.floats(hidden);
    h0 = numbers.floats(batch * hidden);
  }

  struct result {
    std::vector<float> outputs, state;
    bool operator==(const result&) const = default;
  };

  result run(int threads = 1) const {
    result made{std::vector<float>(batch * length * hidden, quiet_nan),
                std::vector<float>(batch * hidden, quiet_nan)};
    thread_pool pool(threads);
    scratch memory(rnn_workspace_bytes(input_dim, hidden, pool.size()));
    const rnn_parameters parameters{
        view<const float, 2>::contiguous(wx.data(), {input_dim, hidden}),
        view<const float, 2>::contiguous(wh.data(), {hidden, hidden}),
        bx.empty() ? nullptr : bx.data(), bh.empty() ? nullptr : bh.data()};
    view<const float, 2> start;
    if (!h0.empty()) start = view<const float, 2>::contiguous(h0.data(), {batch, hidden});
    REQUIRE_EQ(
        rnn_forward(view<const float, 3>::contiguous(x.data(), {batch, length, input_dim}),
                    parameters, start,
                    view<float, 3>::contiguous(made.outputs.data(), {batch, length, hidden}),
                    view<float, 2>::contiguous(made.state.data(), {batch, hidden}), memory, pool),
        status::ok);
    return made;
  }

  template <typename T>
  std::vector<T> reference() const {
    std::vector<T> bias;
    for (std::size_t j = 0; j < bx.size(); ++j)
      bias.push_back(static_cast<T>(bx[j]) + static_cast<T>(bh[j]));
    return reference::rnn<T>({x.begin(), x.end()}, {wx.begin(), wx.end()}, {wh.begin(), wh.end()},
                             bias, {h0.begin(), h0.end()}, batch, length, input_dim, hidden);
  }
};

}  // namespace

TEST_CASE("rnn is right over batches, lengths and sizes") {
  for (extent batch : {1, 2, 5, 17}) {
    for (extent hidden : {1, 4, 9, 64, 70}) {
      const rnn_case one(batch, 12, 6, hidden, 1);
      CAPTURE(batch);
      CAPTURE(hidden);
      check_near(one.run().outputs, one.reference<float>(), one.reference<double>());
    }
  }
}

TEST_CASE("rnn starts from zeros and without biases where none are given") {
  rnn_case one(3, 7, 5, 10, 2);
  one.h0.clear();
  one.bx.clear();
  one.bh.clear();
  check_near(one.run().outputs, one.reference<float>(), one.reference<double>());
}

TEST_CASE("one step of rnn follows the formula") {
  // h = tanh(0.5 x + 0.5 h) over x = 1, 2, 3.
  rnn_case one(1, 3, 1, 1, 0);
  one.x = {1, 2, 3};
  one.wx = one.wh = {0.5};
  one.bx = one.bh = one.h0 = {0};
  CHECK_LE(largest_error(one.run().outputs, {0.46211716, 0.84288614, 0.95803600}), 1e-6);
}

TEST_CASE(
    "rnn step by step has the bits of the whole sequence, and the last state is the last output") {
  const rnn_case whole(2, 9, 6, 21, 3);
  const auto expected = whole.run();
  rnn_case step = whole;
  step.length = 1;
  step.x.resize(2 * 6);
  for (extent t = 0; t < 9; ++t) {
    for (extent b = 0; b < 2; ++b) std::copy_n(&whole.x[(b * 9 + t) * 6], 6, &step.x[b * 6]);
    const auto made = step.run();
    for (extent b = 0; b < 2; ++b)
      CHECK(std::equal(&made.state[b * 21], &made.state[b * 21] + 21,
                       &expected.outputs[(b * 9 + t) * 21]));
    step.h0 = made.state;
  }
  CHECK_EQ(step.h0, expected.state);
}

TEST_CASE("rnn has the same bits for any number of threads, in a batch or alone") {
  const rnn_case batch(40, 11, 7, 33, 4);
  const auto expected = batch.run();
  for (int threads : {2, 3, 8}) CHECK(batch.run(threads) == expected);
  rnn_case alone = batch;
  alone.batch = 1;
  alone.x.assign(&batch.x[23 * 11 * 7], &batch.x[24 * 11 * 7]);
  alone.h0.assign(&batch.h0[23 * 33], &batch.h0[24 * 33]);
  const auto made = alone.run();
  CHECK(std::equal(made.outputs.begin(), made.outputs.end(), &expected.outputs[23 * 11 * 33]));
}

TEST_CASE("a sequence of length 0 keeps its state") {
  const rnn_case one(2, 0, 3, 5, 5);
  CHECK_EQ(one.run().state, one.h0);
  CHECK(one.run().outputs.empty());
}
