#include "kernels/vmath.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "support/doctest.hpp"

using namespace qkv;

namespace {

float exp_of(float x) {
  float lane[simd::lanes];
  simd::store(lane, simd::exp_nonpositive(simd::broadcast(x)));
  return lane[simd::lanes - 1];
}

float tanh_of(float x) { return simd::first_lane(simd::tanh(simd::broadcast(x))); }

// In units of the last place of the exact result.
double ulps(float result, double exact) {
  const float rounded = static_cast<float>(exact);
  const double unit =
      std::abs(std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded);
  return std::abs(result - exact) / unit;
}

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("exp is right to 1.5 units in the last place") {
  double worst = 0;
  for (float x = 0; x > -69.6f; x -= 0.00137f)
    worst = std::max(worst, ulps(exp_of(x), std::exp(static_cast<double>(x))));
  CHECK_LE(worst, 1.5);
  CHECK_EQ(exp_of(0.0f), 1.0f);
}

TEST_CASE("exp below 2^-100.5 is exactly 0") {
  CHECK_GT(exp_of(-69.6f), 0.0f);
  for (float x : {-69.7f, -87.34f, -87.5f, -95.0f, -104.0f, -1000.0f, -3e38f, -infinity})
    CHECK_EQ(exp_of(x), 0.0f);
}

TEST_CASE("exp of NaN is NaN, whatever its payload") {
  for (std::uint32_t payload : {0x7fc00000u, 0xffc00000u, 0x7fc001ffu, 0x7fffffffu, 0xffffffffu}) {
    CHECK(std::isnan(exp_of(std::bit_cast<float>(payload))));
  }
}

TEST_CASE("tanh is right to 3 units in the last place and never leaves [-1, 1]") {
  double worst = 0;
  for (float x = -12.0f; x < 12.0f; x += 0.00071f) {
    worst = std::max(worst, ulps(tanh_of(x), std::tanh(static_cast<double>(x))));
    if (!(std::abs(tanh_of(x)) <= 1.0f)) FAIL(x);
  }
  for (float x = 1e-30f; x < 1.0f; x *= 1.7f)
    worst = std::max(worst, ulps(tanh_of(x), std::tanh(static_cast<double>(x))));
  CHECK_LE(worst, 3.0);
  CHECK_EQ(tanh_of(infinity), 1.0f);
  CHECK_EQ(tanh_of(-infinity), -1.0f);
  CHECK(std::isnan(tanh_of(std::numeric_limits<float>::quiet_NaN())));
}
