#include "qkv/softmax.hpp"

#include "support/attention_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct softmax_result {
  std::vector<float> out, log_sum_exp;
};

softmax_result run(const std::vector<float>& x, extent columns) {
  const extent rows = columns == 0 ? 1 : static_cast<extent>(x.size()) / columns;
  softmax_result made{std::vector<float>(x.size(), quiet_nan), std::vector<float>(rows, quiet_nan)};
  thread_pool pool(2);
  REQUIRE_EQ(softmax_forward(view<const float, 2>::contiguous(x.data(), {rows, columns}),
                             view<float, 2>::contiguous(made.out.data(), {rows, columns}),
                             made.log_sum_exp.data(), pool),
             status::ok);
  return made;
}

}  // namespace

TEST_CASE("softmax is right at every row length") {
  number_source numbers(1);
  for (extent columns : {1, 2, 3, 4, 5, 8, 63, 511, 512, 513, 3000}) {
    const auto x = numbers.floats(3 * columns, 8);
    std::vector<float> plain = x;
    std::vector<double> exact = to_double(x), log_sum_exp;
    for (extent r = 0; r < 3; ++r) {
      reference::softmax_row(&plain[r * columns], columns);
      log_sum_exp.push_back(reference::softmax_row(&exact[r * columns], columns));
    }
    const auto made = run(x, columns);
    check_near(made.out, plain, exact);
    CHECK_LE(largest_error(made.log_sum_exp, log_sum_exp), 2e-6);
  }
}

TEST_CASE("softmax of known rows") {
  const auto made = run({9.34623f, 8.43469f, 7.19462f, 6.59385f, 5.89481f, 5.67304f}, 6);
  CHECK_LE(largest_error(made.out, {0.610101, 0.245202, 0.070953, 0.038910, 0.019341, 0.015494}),
           1e-6);
  CHECK_EQ(made.log_sum_exp[0], doctest::Approx(9.840361).epsilon(1e-7));
  CHECK_EQ(run({1000, 1000}, 2).out, std::vector<float>{0.5, 0.5});
  CHECK_EQ(run({-infinity, 0}, 2).out, std::vector<float>{0, 1});
}

TEST_CASE("softmax of nothing visible is zeros, of NaN is NaN") {
  const auto nothing = run({-infinity, -infinity, -infinity}, 3);
  CHECK_EQ(nothing.out, std::vector<float>{0, 0, 0});
  CHECK_EQ(nothing.log_sum_exp[0], -infinity);
  CHECK_EQ(run({}, 0).log_sum_exp[0], -infinity);
  for (float poison : {quiet_nan, infinity}) {
    for (float x : run({1, poison, 2, 3, 4}, 5).out) CHECK(std::isnan(x));
  }
}

TEST_CASE("a long row of softmax keeps its digits") {
  const auto made = run(std::vector<float>(65536, 0.1f), 65536);
  CHECK_EQ(made.out[0], 1.0f / 65536);
}
