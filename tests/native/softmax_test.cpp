#include "qkv/softmax.hpp"

#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

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

namespace {

std::vector<float> run_backward(const std::vector<float>& d_out, const std::vector<float>& x,
                                extent columns, int threads = 1) {
  const std::array<extent, 2> shape{columns == 0 ? 1 : static_cast<extent>(x.size()) / columns,
                                    columns};
  std::vector<float> d_x(x.size(), quiet_nan);
  thread_pool pool(threads);
  REQUIRE_EQ(softmax_backward(view<const float, 2>::contiguous(d_out.data(), shape),
                              view<const float, 2>::contiguous(x.data(), shape),
                              view<float, 2>::contiguous(d_x.data(), shape), pool),
             status::ok);
  return d_x;
}

template <typename T>
std::vector<T> plain_backward(const std::vector<float>& d_out, const std::vector<float>& x,
                              extent columns) {
  std::vector<T> d_x;
  for (std::size_t row = 0; row < x.size(); row += columns) {
    const auto made = reference::softmax_row_backward<T>({&d_out[row], &d_out[row] + columns},
                                                         {&x[row], &x[row] + columns});
    d_x.insert(d_x.end(), made.begin(), made.end());
  }
  return d_x;
}

}  // namespace

TEST_CASE("softmax_backward is right at every row length, with hidden columns or without") {
  number_source numbers(2);
  for (extent columns : {1, 2, 3, 4, 5, 8, 63, 511, 512, 513, 3000}) {
    for (bool hides : {false, true}) {
      auto x = numbers.floats(3 * columns, 8);
      const auto d_out = numbers.floats(3 * columns);
      if (hides) {
        for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -infinity;
      }
      check_near(run_backward(d_out, x, columns), plain_backward<float>(d_out, x, columns),
                 plain_backward<double>(d_out, x, columns));
    }
  }
  CHECK(run_backward({}, {}, 0).empty());
}

TEST_CASE("softmax_backward: what is hidden has no gradient and no say, a visible NaN shows") {
  const auto zeros = std::vector<float>(5, 0);
  CHECK_EQ(run_backward({1, quiet_nan, 2, infinity, 3}, std::vector<float>(5, -infinity), 5),
           zeros);
  for (float poison : {quiet_nan, infinity, -infinity}) {
    // Behind a hidden column.
    const auto clean = run_backward({1, 0, 2, 5, 3}, {1, -infinity, 2, 3, 4}, 5);
    CHECK_EQ(run_backward({1, poison, 2, 5, 3}, {1, -infinity, 2, 3, 4}, 5), clean);
    // Behind a visible one: in its row, but for the hidden column.
    const auto made = run_backward({1, 0, poison, 5, 3, 1, 2, 3, 4, 5},
                                   {1, -infinity, 2, 3, 4, 1, 2, 3, 4, 5}, 5);
    for (int j : {0, 2, 3, 4}) CHECK_FALSE(std::isfinite(made[j]));
    CHECK_EQ(made[1], 0);
    for (int j = 5; j < 10; ++j) CHECK(std::isfinite(made[j]));
  }
  for (float x : run_backward({1, 2, 3}, {1, quiet_nan, 2}, 3)) CHECK(std::isnan(x));
}

TEST_CASE("softmax_backward of known rows, for any number of threads, and what it refuses") {
  // out = (1/2, 1/2): the mean of d_out is 2.
  CHECK_EQ(run_backward({1, 3}, {1000, 1000}, 2), std::vector<float>{-0.5, 0.5});
  number_source numbers(3);
  const auto x = numbers.floats(50 * 90, 5), d_out = numbers.floats(50 * 90);
  for (int threads : {2, 8})
    CHECK_EQ(run_backward(d_out, x, 90, threads), run_backward(d_out, x, 90));
  std::vector<float> d_x(6, -1);
  const auto refuses = [&](view<const float, 2> from, view<float, 2> to, status expected) {
    thread_pool pool(1);
    const auto good = view<const float, 2>::contiguous(x.data(), {2, 3});
    CHECK_EQ(softmax_backward(from, good, to, pool), expected);
    CHECK_EQ(softmax_backward(good, from, to, pool), expected);
  };
  const auto to = view<float, 2>::contiguous(d_x.data(), {2, 3});
  refuses(view<const float, 2>::contiguous(x.data(), {3, 2}), to, status::shape_mismatch);
  refuses({x.data(), {2, 3}, {1, 2}}, to, status::invalid_argument);
  refuses(view<const float, 2>::contiguous(x.data(), {2, 3}), {d_x.data(), {2, 3}, {1, 2}},
          status::invalid_argument);
  CHECK_EQ(d_x, std::vector<float>(6, -1));
}
