// The plain gradients through time, which the kernels are held to, against finite differences.
#include "support/gradcheck.hpp"
#include "support/recurrent_gradient_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

// A problem in doubles; what is not given is zeros that may be changed too.
struct double_case {
  const recurrent_case& one;
  recurrent_values<double> values;
  recurrent_loss<double> d_loss;

  double_case(const recurrent_case& one, const recurrent_loss<float>& loss)
      : one(one),
        values(one.values<double>()),
        d_loss{to_double(loss.outputs), to_double(loss.h), to_double(loss.c)} {
    const extent hidden = one.sizes.hidden, columns = gates_of(one.options.cell) * hidden;
    const extent states = one.directions() * one.sizes.batch * hidden;
    const bool is_lstm = one.options.cell == recurrent_cell::lstm;
    values.h0.resize(states);
    values.c0.resize(is_lstm ? states : 0);
    for (auto& weights : values.weights) {
      weights.bx.resize(columns);
      weights.bh.resize(columns);
      weights.peephole.resize(is_lstm ? 3 * hidden : 0);
    }
  }

  double loss() const {
    const auto made = one.reference_of(values);
    const auto share = [](const std::vector<double>& out, const std::vector<double>& d_out) {
      return d_out.empty() ? 0 : weighted_sum(out, d_out);
    };
    return share(made.outputs, d_loss.outputs) + share(made.h, d_loss.h) + share(made.c, d_loss.c);
  }

  void check() {
    const auto made = reference_gradients(one, values, d_loss).by;
    const auto check_one = [&](std::vector<double>& x, const std::vector<double>& d_x) {
      check_gradient(x, d_x, [&] { return loss(); });
    };
    check_one(values.x, made.x);
    check_one(values.h0, made.h0);
    check_one(values.c0, made.c0);
    for (extent d = 0; d < one.directions(); ++d) {
      auto& [wx, wh, bx, bh, peephole] = values.weights[d];
      check_one(wx, made.weights[d].wx);
      check_one(wh, made.weights[d].wh);
      check_one(bx, made.weights[d].bx);
      check_one(bh, made.weights[d].bh);
      if (!peephole.empty()) check_one(peephole, made.weights[d].peephole);
    }
  }
};

}  // namespace

TEST_CASE("the plain gradients through time are those of their loss, for every option") {
  for (const recurrent_options& options : every_recurrent_option()) {
    for (int missing = 0; missing < 8; ++missing) {
      CAPTURE(options);
      CAPTURE(missing);
      recurrent_case one({4, 5, 3, 3}, options, 1);
      one.lengths = {5, 0, 1, 3};
      auto loss = some_loss(one);
      if (missing & 1) loss.outputs.clear();
      if (missing & 2) loss.h.clear();
      if (missing & 4) loss.c.clear();
      double_case(one, loss).check();
    }
  }
}

TEST_CASE("the plain gradients through time start from zeros and without biases") {
  for (const recurrent_options& options : every_recurrent_option()) {
    CAPTURE(options);
    recurrent_case one({2, 4, 3, 4}, options, 2);
    one.h0.clear();
    one.c0.clear();
    for (auto& weights : one.weights) {
      weights.bx.clear();
      weights.bh.clear();
      weights.peephole.clear();
    }
    double_case(one, some_loss(one)).check();
  }
}
