#include "qkv/activation.hpp"
#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

enum class activation { gelu, gelu_tanh, silu };
constexpr activation all[] = {activation::gelu, activation::gelu_tanh, activation::silu};

status backward(activation kind, view<const float, 1> d_out, view<const float, 1> x,
                view<float, 1> d_x, thread_pool& pool) {
  if (kind == activation::silu) return silu_backward(d_out, x, d_x, pool);
  const auto approximation =
      kind == activation::gelu ? gelu_approximation::none : gelu_approximation::tanh;
  return gelu_backward(d_out, x, approximation, d_x, pool);
}

std::vector<float> run(activation kind, const std::vector<float>& d_out,
                       const std::vector<float>& x, int threads = 1) {
  const std::array<extent, 1> shape{static_cast<extent>(x.size())};
  std::vector<float> d_x(x.size(), quiet_nan);
  thread_pool pool(threads);
  REQUIRE_EQ(backward(kind, view<const float, 1>::contiguous(d_out.data(), shape),
                      view<const float, 1>::contiguous(x.data(), shape),
                      view<float, 1>::contiguous(d_x.data(), shape), pool),
             status::ok);
  return d_x;
}

std::vector<float> slopes(activation kind, const std::vector<float>& x) {
  return run(kind, std::vector<float>(x.size(), 1), x);
}

template <typename T>
std::vector<T> plain_loop(activation kind, const std::vector<float>& d_out,
                          const std::vector<float>& x) {
  std::vector<T> d_x(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T at = x[i];
    const T slope = kind == activation::gelu        ? reference::gelu_slope(at)
                    : kind == activation::gelu_tanh ? reference::gelu_tanh_slope(at)
                                                    : reference::silu_slope(at);
    d_x[i] = d_out[i] * slope;
  }
  return d_x;
}

}  // namespace

TEST_CASE("the gradients of gelu and silu are right at every length") {
  number_source numbers(1);
  for (activation kind : all) {
    for (extent count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 4095, 4096, 4097}) {
      const auto x = numbers.floats(count, 5), d_out = numbers.floats(count, 2);
      check_near(run(kind, d_out, x), plain_loop<float>(kind, d_out, x),
                 plain_loop<double>(kind, d_out, x));
    }
  }
}

TEST_CASE("the slopes of gelu and silu keep their digits in the tails") {
  // Where a slope is no difference of two large parts: left of its zero, and on the right.
  const float epsilon = std::numeric_limits<float>::epsilon();
  for (activation kind : {activation::gelu, activation::silu}) {
    std::vector<float> x;
    for (float at = kind == activation::gelu ? -11.5f : -69.0f; at < 12; at += 0.0037f) {
      if (at < -2 || at > 0) x.push_back(at);
    }
    const auto made = slopes(kind, x);
    const auto exact = plain_loop<double>(kind, std::vector<float>(x.size(), 1), x);
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(made[i] / exact[i] - 1));
    }
    CHECK_LE(largest, 8 * epsilon);
  }
}

TEST_CASE("the slopes of gelu and silu at the ends of the numbers") {
  for (activation kind : all) {
    CAPTURE(static_cast<int>(kind));
    const auto made = slopes(kind, {-infinity, infinity, quiet_nan, -3e38f, 3e38f, 0.0f, -150.0f});
    CHECK_EQ(made[0], 0.0f);
    CHECK_EQ(made[1], 1.0f);
    CHECK(std::isnan(made[2]));
    CHECK_EQ(made[3], 0.0f);
    CHECK_EQ(made[4], 1.0f);
    CHECK_EQ(made[5], 0.5f);
    CHECK_EQ(made[6], 0.0f);
    CHECK(std::isnan(run(kind, {quiet_nan}, {1})[0]));
    std::vector<float> x;
    for (float at = -130; at < 0; at += 0.0037f) x.push_back(at);
    // Nothing on the way down to 0 is a denormal number.
    for (float value : slopes(kind, x)) {
      if (value != 0 && !std::isnormal(value)) FAIL(value);
    }
  }
}

TEST_CASE("the slopes of gelu and silu at known numbers") {
  CHECK_LE(
      largest_error(slopes(activation::gelu, {-1, 1, 3}), {-0.08331547, 1.08331547, 1.01194564}),
      3e-7);
  CHECK_LE(largest_error(slopes(activation::gelu_tanh, {-1, 1, 3}),
                         {-0.08296408, 1.08296408, 1.01158417}),
           3e-7);
  CHECK_LE(
      largest_error(slopes(activation::silu, {-1, 1, 3}), {0.07232949, 0.92767051, 1.08810413}),
      3e-7);
}

TEST_CASE("activations' gradients have the same bits for any number of threads, and in place") {
  number_source numbers(2);
  const auto x = numbers.floats(20000, 4), d_out = numbers.floats(20000);
  for (activation kind : all) {
    const auto expected = run(kind, d_out, x);
    for (int threads : {2, 3, 8}) CHECK_EQ(run(kind, d_out, x, threads), expected);
    std::vector<float> place = d_out;
    const auto in_place = view<float, 1>::contiguous(place.data(), {20000});
    thread_pool pool(1);
    REQUIRE_EQ(backward(kind, in_place, view<const float, 1>::contiguous(x.data(), {20000}),
                        in_place, pool),
               status::ok);
    CHECK_EQ(place, expected);
  }
}

TEST_CASE("activations' gradients refuse what does not fit") {
  std::vector<float> x(8, 1), d_out(8, 1), d_x(8, -1);
  const auto refuses = [](view<const float, 1> out, view<const float, 1> from, view<float, 1> to,
                          status expected) {
    thread_pool pool(1);
    for (activation kind : all) CHECK_EQ(backward(kind, out, from, to, pool), expected);
  };
  const auto mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refuses({d_out.data(), {3}, {1}}, {x.data(), {4}, {1}}, {d_x.data(), {4}, {1}}, mismatch);
  refuses({d_out.data(), {4}, {1}}, {x.data(), {4}, {1}}, {d_x.data(), {3}, {1}}, mismatch);
  refuses({d_out.data(), {4}, {2}}, {x.data(), {4}, {1}}, {d_x.data(), {4}, {1}}, invalid);
  refuses({d_out.data(), {4}, {1}}, {x.data(), {4}, {2}}, {d_x.data(), {4}, {1}}, invalid);
  refuses({d_out.data(), {4}, {1}}, {x.data(), {4}, {1}}, {d_x.data(), {4}, {2}}, invalid);
  CHECK_EQ(d_x, std::vector<float>(8, -1));
}
