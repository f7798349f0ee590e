#include "qkv/activation.hpp"

#include "qkv/reference.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

enum class activation { gelu, gelu_tanh, silu };
constexpr activation all[] = {activation::gelu, activation::gelu_tanh, activation::silu};

std::vector<float> run(activation kind, const std::vector<float>& x, int threads = 1) {
  const extent count = static_cast<extent>(x.size());
  std::vector<float> out(x.size(), quiet_nan);
  const auto from = view<const float, 1>::contiguous(x.data(), {count});
  const auto to = view<float, 1>::contiguous(out.data(), {count});
  const auto approximation =
      kind == activation::gelu ? gelu_approximation::none : gelu_approximation::tanh;
  thread_pool pool(threads);
  REQUIRE_EQ(kind == activation::silu ? silu_forward(from, to, pool)
                                      : gelu_forward(from, approximation, to, pool),
             status::ok);
  return out;
}

template <typename T>
std::vector<T> plain_loop(activation kind, const std::vector<float>& x) {
  std::vector<T> out(x.begin(), x.end());
  for (T& value : out) {
    value = kind == activation::gelu        ? reference::gelu(value)
            : kind == activation::gelu_tanh ? reference::gelu_tanh(value)
                                            : reference::silu(value);
  }
  return out;
}

std::vector<float> range(float begin, float end, float step) {
  std::vector<float> x;
  for (float value = begin; value < end; value += step) x.push_back(value);
  return x;
}

double largest_relative_error(const std::vector<float>& result, const std::vector<double>& exact) {
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (exact[i] == 0 && result[i] == 0) continue;
    largest = std::max(largest, std::abs(result[i] / exact[i] - 1));
  }
  return largest;
}

}  // namespace

TEST_CASE("gelu and silu are right at every length") {
  number_source numbers(1);
  for (activation kind : all) {
    for (extent count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 4095, 4096, 4097}) {
      const auto x = numbers.floats(count, 5);
      check_near(run(kind, x), plain_loop<float>(kind, x), plain_loop<double>(kind, x));
    }
  }
}

TEST_CASE("gelu and silu keep their digits on both sides") {
  const float epsilon = std::numeric_limits<float>::epsilon();
  const auto near = range(-11.5f, 12.0f, 0.00071f), far = range(-69.0f, 40.0f, 0.00713f);
  CHECK_LE(largest_relative_error(run(activation::gelu, near),
                                  plain_loop<double>(activation::gelu, near)),
           4 * epsilon);
  CHECK_LE(
      largest_relative_error(run(activation::silu, far), plain_loop<double>(activation::silu, far)),
      4 * epsilon);
  // Its polynomial grows to 60, whose last place is 4e-6 of the result.
  const auto tanh_range = range(-8.0f, 12.0f, 0.00071f);
  std::vector<double> exact;
  for (float value : tanh_range) {
    const double x = value;
    const double u = 2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    exact.push_back(x / (1 + std::exp(-u)));
  }
  CHECK_LE(largest_relative_error(run(activation::gelu_tanh, tanh_range), exact), 60 * epsilon);
  std::vector<float> tiny;
  for (float x = 1e-37f; x < 1; x *= 1.7f) tiny.insert(tiny.end(), {x, -x});
  for (activation kind : all) {
    CHECK_LE(largest_relative_error(run(kind, tiny), plain_loop<double>(kind, tiny)), 4 * epsilon);
  }
}

TEST_CASE("gelu and silu at the ends of the numbers") {
  for (activation kind : all) {
    CAPTURE(static_cast<int>(kind));
    const auto made = run(kind, {-infinity, infinity, quiet_nan, -3e38f, 3e38f, 0.0f, -150.0f});
    CHECK_EQ(made[0], 0.0f);
    CHECK_EQ(made[1], infinity);
    CHECK(std::isnan(made[2]));
    CHECK_EQ(made[3], 0.0f);
    CHECK_EQ(made[4], 3e38f);
    CHECK_EQ(made[5], 0.0f);
    CHECK_EQ(made[6], 0.0f);
    // Nothing on the way down to 0 is a denormal number.
    for (float value : run(kind, range(-130.0f, 0.0f, 0.0037f))) {
      if (value != 0 && !std::isnormal(value)) FAIL(value);
    }
  }
}

TEST_CASE("gelu and silu of known numbers") {
  CHECK_LE(largest_error(run(activation::gelu, {-1, 1, 3}), {-0.15865525, 0.84134475, 2.99595031}),
           3e-7);
  CHECK_LE(
      largest_error(run(activation::gelu_tanh, {-1, 1, 3}), {-0.15880801, 0.84119199, 2.99636261}),
      3e-7);
  CHECK_LE(largest_error(run(activation::silu, {-1, 1, 3}), {-0.26894142, 0.73105858, 2.85772238}),
           3e-7);
}

TEST_CASE("activations have the same bits for any number of threads, and in place") {
  number_source numbers(2);
  std::vector<float> x = numbers.floats(20000, 4);
  for (activation kind : all) {
    const auto expected = run(kind, x);
    for (int threads : {2, 3, 8}) CHECK_EQ(run(kind, x, threads), expected);
  }
  const auto expected = run(activation::silu, x);
  const auto in_place = view<float, 1>::contiguous(x.data(), {20000});
  thread_pool pool(1);
  REQUIRE_EQ(silu_forward(in_place, in_place, pool), status::ok);
  CHECK_EQ(x, expected);
}

TEST_CASE("activations refuse what does not fit") {
  std::vector<float> x(8, 1), out(8, -1);
  const auto refuses = [](view<const float, 1> from, view<float, 1> to, status expected) {
    thread_pool pool(1);
    CHECK_EQ(gelu_forward(from, gelu_approximation::none, to, pool), expected);
    CHECK_EQ(silu_forward(from, to, pool), expected);
  };
  refuses({x.data(), {4}, {1}}, {out.data(), {3}, {1}}, status::shape_mismatch);
  refuses({x.data(), {4}, {2}}, {out.data(), {4}, {1}}, status::invalid_argument);
  refuses({x.data(), {4}, {1}}, {out.data(), {4}, {2}}, status::invalid_argument);
  CHECK_EQ(out, std::vector<float>(8, -1));
}
