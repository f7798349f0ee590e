#include "kernels/portable_math.hpp"

#include <algorithm>
#include <limits>

#include "support/doctest.hpp"

using namespace qkv;

namespace {
constexpr double unit = std::numeric_limits<double>::epsilon();
}

TEST_CASE("portable sine and cosine are right to a unit in the last place of 1") {
  for (double angle = 1e-9; angle < 0x1p30; angle = angle * 1.013 + 0.01) {
    for (double x : {angle, -angle}) {
      const auto [sine, cosine] = kernels::sine_and_cosine_of(x);
      CHECK_LE(std::abs(sine - std::sin(x)), unit);
      CHECK_LE(std::abs(cosine - std::cos(x)), unit);
    }
  }
  CHECK_EQ(kernels::sine_and_cosine_of(0.0).sine, 0.0);
  CHECK_EQ(kernels::sine_and_cosine_of(0.0).cosine, 1.0);
}

TEST_CASE("portable logarithm is right to two units in the last place") {
  for (double x = 1e-300; x < 1e300; x *= 3.7) {
    const double exact = std::log(x);
    CHECK_LE(std::abs(kernels::logarithm(x) - exact), 2 * unit * std::max(1.0, std::abs(exact)));
  }
  CHECK_EQ(kernels::logarithm(1.0), 0.0);
}

TEST_CASE("portable exponential is right to two units in the last place") {
  for (double x = -700; x < 700; x += 0.37)
    CHECK_LE(std::abs(kernels::exponential(x) / std::exp(x) - 1), 2 * unit);
  CHECK_EQ(kernels::exponential(0.0), 1.0);
}
