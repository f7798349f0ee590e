#include "qkv/norm.hpp"

#include "qkv/reference.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr extent row_lengths[] = {1, 2, 3, 4, 5, 8, 13, 64, 65, 511, 512, 513, 3000};

struct norm_case {
  extent columns;
  std::vector<float> x, gamma, beta;  // no gamma or beta where empty
  float epsilon = 1e-5f;

  norm_case(extent rows, extent columns, std::uint64_t seed, double scale = 1.0, float mean = 0)
      : columns(columns) {
    number_source numbers(seed);
    x = numbers.floats(rows * columns, scale);
    for (float& value : x) value += mean;
    gamma = numbers.floats(columns);
    beta = numbers.floats(columns);
  }

  std::vector<float> run(bool mean_too, int threads = 1) const {
    const extent rows = static_cast<extent>(x.size()) / columns;
    std::vector<float> out(x.size(), quiet_nan);
    const auto from = view<const float, 2>::contiguous(x.data(), {rows, columns});
    const auto to = view<float, 2>::contiguous(out.data(), {rows, columns});
    const float* scale = gamma.empty() ? nullptr : gamma.data();
    const float* shift = beta.empty() ? nullptr : beta.data();
    thread_pool pool(threads);
    REQUIRE_EQ(mean_too ? layer_norm_forward(from, scale, shift, epsilon, to, pool)
                        : rms_norm_forward(from, scale, epsilon, to, pool),
               status::ok);
    return out;
  }

  template <typename T>
  std::vector<T> reference(bool mean_too) const {
    const std::vector<T> values(x.begin(), x.end()), scale(gamma.begin(), gamma.end()),
        shift(beta.begin(), beta.end());
    return mean_too ? reference::layer_norm<T>(values, scale, shift, epsilon, columns)
                    : reference::rms_norm<T>(values, scale, epsilon, columns);
  }

  void check() const {
    CAPTURE(columns);
    for (bool mean_too : {true, false}) {
      CAPTURE(mean_too);
      check_near(run(mean_too), reference<float>(mean_too), reference<double>(mean_too));
    }
  }
};

}  // namespace

TEST_CASE("layer_norm and rms_norm are right at every row length, with gamma and beta or without") {
  for (extent columns : row_lengths) {
    norm_case one(3, columns, 1);
    one.check();
    one.beta.clear();
    one.check();
    one.gamma.clear();
    one.check();
  }
}

TEST_CASE("layer_norm and rms_norm of large, tiny and equal numbers") {
  norm_case(5, 65, 2, 1e4).check();
  norm_case(5, 65, 3, 1e-4).check();
  norm_case equal(3, 257, 4, 0, 0.1f);
  equal.check();
}

TEST_CASE("a large mean costs layer_norm no digits") {
  for (float mean : {100.0f, -3e4f}) {
    norm_case one(4, 300, 5, 1.0, mean);
    one.gamma.clear();
    one.beta.clear();
    // The plain program's sums are no measure here; a few roundings of the result are.
    CHECK_LE(largest_error(one.run(true), one.reference<double>(true)), 5e-7);
  }
}

TEST_CASE("layer_norm of a known row") {
  norm_case one(1, 4, 0);
  one.x = {1, 2, 3, 4};
  one.gamma = {1, 1, 2, 1};
  one.beta = {0, 0, 0, 10};
  one.epsilon = 0;
  CHECK_LE(largest_error(one.run(true), {-1.3416407865, -0.4472135955, 0.894427191, 11.3416407865}),
           1e-6);
  one.gamma.clear();
  CHECK_LE(largest_error(one.run(false), {0.36514837167, 0.73029674334, 1.095445115, 1.4605934867}),
           1e-6);
}

TEST_CASE("the norms have the same bits for any number of threads, and in place") {
  const norm_case one(40, 130, 6);
  for (bool mean_too : {true, false}) {
    const auto expected = one.run(mean_too);
    for (int threads : {2, 3, 8}) CHECK_EQ(one.run(mean_too, threads), expected);
  }
  std::vector<float> x = one.x;
  const auto rows = view<float, 2>::contiguous(x.data(), {40, 130});
  thread_pool pool(1);
  REQUIRE_EQ(layer_norm_forward(rows, one.gamma.data(), one.beta.data(), one.epsilon, rows, pool),
             status::ok);
  CHECK_EQ(x, one.run(true));
}

TEST_CASE("rows of a norm may lie apart") {
  const norm_case one(3, 10, 7);
  const auto expected = one.run(true);
  std::vector<float> x(3 * 16, quiet_nan), out(3 * 12, -1);
  for (extent r = 0; r < 3; ++r) std::copy_n(&one.x[r * 10], 10, &x[r * 16]);
  thread_pool pool(1);
  REQUIRE_EQ(layer_norm_forward({x.data(), {3, 10}, {16, 1}}, one.gamma.data(), one.beta.data(),
                                one.epsilon, {out.data(), {3, 10}, {12, 1}}, pool),
             status::ok);
  for (extent r = 0; r < 3; ++r) {
    CHECK(std::equal(&expected[r * 10], &expected[r * 10] + 10, &out[r * 12]));
    CHECK_EQ(out[r * 12 + 10], -1);
  }
}

TEST_CASE("NaN and Infinity stay in their row of a norm") {
  for (float poison : {quiet_nan, std::numeric_limits<float>::infinity()}) {
    norm_case one(3, 6, 8);
    const auto clean = one.run(true);
    one.x[6 + 2] = poison;
    const auto made = one.run(true);
    for (extent i = 0; i < 18; ++i) {
      if (i / 6 == 1) {
        CHECK(std::isnan(made[i]));
      } else {
        CHECK_EQ(made[i], clean[i]);
      }
    }
    CHECK(std::isnan(one.run(false)[6 + 2]));
  }
}

TEST_CASE("the norms take axes of length 0 and refuse what does not fit") {
  std::vector<float> x(12, 1), out(12, -1);
  const auto rows = [](std::vector<float>& data, extent count, extent columns) {
    return view<float, 2>::contiguous(data.data(), {count, columns});
  };
  const auto norm = [](view<const float, 2> from, view<float, 2> to, float epsilon) {
    thread_pool pool(1);
    const status made = rms_norm_forward(from, nullptr, epsilon, to, pool);
    CHECK_EQ(layer_norm_forward(from, nullptr, nullptr, epsilon, to, pool), made);
    return made;
  };
  CHECK_EQ(norm(rows(x, 0, 5), rows(out, 0, 5), 1e-5f), status::ok);
  CHECK_EQ(norm(rows(x, 5, 0), rows(out, 5, 0), 1e-5f), status::ok);
  CHECK_EQ(norm(rows(x, 3, 4), rows(out, 4, 3), 1e-5f), status::shape_mismatch);
  CHECK_EQ(norm({x.data(), {3, 4}, {1, 3}}, rows(out, 3, 4), 1e-5f), status::invalid_argument);
  CHECK_EQ(norm(rows(x, 3, 4), {out.data(), {3, 4}, {1, 3}}, 1e-5f), status::invalid_argument);
  for (float epsilon : {-1e-5f, quiet_nan}) {
    CHECK_EQ(norm(rows(x, 3, 4), rows(out, 3, 4), epsilon), status::invalid_argument);
  }
  CHECK_EQ(out, std::vector<float>(12, -1));
}
