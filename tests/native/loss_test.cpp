#include "qkv/loss.hpp"

#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct result {
  double loss;
  std::vector<float> d_logits;
};

result run(const std::vector<float>& logits, const std::vector<std::int32_t>& targets,
           extent classes, int threads = 1) {
  const std::array<extent, 2> shape{static_cast<extent>(targets.size()), classes};
  result made{-1, std::vector<float>(logits.size(), quiet_nan)};
  thread_pool pool(threads);
  scratch memory(cross_entropy_workspace_bytes(shape[0]));
  REQUIRE_EQ(cross_entropy(view<const float, 2>::contiguous(logits.data(), shape), targets.data(),
                           made.loss, view<float, 2>::contiguous(made.d_logits.data(), shape),
                           memory, pool),
             status::ok);
  return made;
}

}  // namespace

TEST_CASE("cross_entropy is right over rows, classes and sizes of logits") {
  number_source numbers(1);
  for (extent rows : {1, 3, 64, 129}) {
    for (extent classes : {1, 2, 3, 4, 5, 17, 130, 515}) {
      for (double scale : {0.1, 3.0, 150.0}) {
        CAPTURE(rows);
        CAPTURE(classes);
        CAPTURE(scale);
        const auto logits = numbers.floats(rows * classes, scale);
        std::vector<std::int32_t> targets;
        for (extent r = 0; r < rows; ++r) {
          targets.push_back(static_cast<std::int32_t>(numbers.below(classes)));
        }
        const auto made = run(logits, targets, classes);
        const auto plain = reference::cross_entropy<float>(logits, targets, classes);
        const auto exact = reference::cross_entropy<double>(to_double(logits), targets, classes);
        check_near(made.d_logits, plain.d_logits, exact.d_logits);
        check_near({static_cast<float>(made.loss)}, {plain.loss}, {exact.loss});
      }
    }
  }
}

TEST_CASE("cross_entropy of known rows") {
  const auto made = run({0, 0, 1, 2, 3, 4}, {1, 0}, 3);
  CHECK_EQ(made.loss, doctest::Approx((1.5514447139 + 2.4076059644) / 2).epsilon(1e-7));
  CHECK_LE(largest_error(made.d_logits,
                         {0.1059707, -0.3940293, 0.2880584, -0.4549847, 0.1223642, 0.3326205}),
           1e-7);
  // A small loss keeps its digits beside large logits, where log_sum_exp - logit has none.
  CHECK_EQ(run({1000, 995}, {0}, 2).loss, doctest::Approx(std::log1p(std::exp(-5))).epsilon(1e-5));
  const auto far = run({1e6, 999000}, {1}, 2);
  CHECK_EQ(far.loss, 1000);
  CHECK_EQ(far.d_logits, std::vector<float>{1, -1});
}

TEST_CASE("a class that cannot be has no gradient, and as a target an infinite loss") {
  auto made = run({0, -infinity, 0}, {0}, 3);
  CHECK_EQ(made.loss, doctest::Approx(std::log(2.0)));
  CHECK_EQ(made.d_logits, std::vector<float>{-0.5, 0, 0.5});
  made = run({0, -infinity, 0}, {1}, 3);
  CHECK_EQ(made.loss, infinity);
  CHECK_EQ(made.d_logits, std::vector<float>{0.5, 0, 0.5});
  made = run({-infinity, -infinity, 0, 0}, {1, 0}, 2);
  CHECK_EQ(made.loss, infinity);
  CHECK_EQ(made.d_logits, std::vector<float>{0, 0, -0.25, 0.25});
}

TEST_CASE("NaN in a logit shows in the loss and in its row's gradients") {
  for (float poison : {quiet_nan, infinity}) {
    for (std::int32_t target : {0, 2}) {
      const auto made = run({1, 2, poison, 1, 2, 3}, {target, 0}, 3);
      CHECK(std::isnan(made.loss));
      for (int j = 0; j < 3; ++j) CHECK(std::isnan(made.d_logits[j]));
      for (int j = 3; j < 6; ++j) CHECK(std::isfinite(made.d_logits[j]));
    }
  }
  CHECK(std::isnan(run({-infinity, quiet_nan}, {0}, 2).loss));
}

TEST_CASE("cross_entropy has the same bits for any number of threads, and takes no rows") {
  number_source numbers(2);
  const auto logits = numbers.floats(100 * 33, 4);
  std::vector<std::int32_t> targets;
  for (int r = 0; r < 100; ++r) targets.push_back(static_cast<std::int32_t>(numbers.below(33)));
  const auto expected = run(logits, targets, 33);
  for (int threads : {2, 3, 8}) {
    const auto made = run(logits, targets, 33, threads);
    CHECK_EQ(made.loss, expected.loss);
    CHECK_EQ(made.d_logits, expected.d_logits);
  }
  CHECK_EQ(run({}, {}, 5).loss, 0);
}

TEST_CASE("cross_entropy refuses what does not fit, and writes nothing then") {
  std::vector<float> logits(6), d_logits(6, -1);
  double loss = -1;
  const auto rows = [](std::vector<float>& data, extent count, extent columns) {
    return view<float, 2>::contiguous(data.data(), {count, columns});
  };
  const auto refuses = [&](view<const float, 2> from, std::vector<std::int32_t> targets,
                           view<float, 2> to, status expected, std::size_t missing = 0) {
    thread_pool pool(1);
    scratch memory(cross_entropy_workspace_bytes(2) - missing);
    CHECK_EQ(cross_entropy(from, targets.data(), loss, to, memory, pool), expected);
  };
  refuses(rows(logits, 2, 3), {0, 0}, rows(d_logits, 3, 2), status::shape_mismatch);
  refuses(rows(logits, 2, 3), {0, 3}, rows(d_logits, 2, 3), status::invalid_argument);
  refuses(rows(logits, 2, 3), {-1, 0}, rows(d_logits, 2, 3), status::invalid_argument);
  refuses({logits.data(), {2, 3}, {1, 2}}, {0, 0}, rows(d_logits, 2, 3), status::invalid_argument);
  refuses(rows(logits, 2, 3), {0, 0}, {d_logits.data(), {2, 3}, {1, 2}}, status::invalid_argument);
  refuses(rows(logits, 2, 3), {0, 0}, rows(d_logits, 2, 3), status::out_of_memory, 68);
  CHECK_EQ(d_logits, std::vector<float>(6, -1));
  CHECK_EQ(loss, -1);
}
