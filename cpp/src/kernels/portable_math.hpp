// Sines, cosines and powers in double from sums, products and quotients alone, which every host
// rounds alike: those of a C library or of JavaScript differ from host to host in their last bits.
// The loops also take a few hundred bytes, where a C library brings ten thousand.
#pragma once

#include <array>
#include <cmath>
#include <numbers>

namespace qkv::kernels {

// 1 / 0!, 1 / 1!, ... 1 / 17!
inline constexpr auto inverse_factorials = [] {
  std::array<double, 18> result{1.0};
  double factorial = 1;
  for (int n = 1; n < 18; ++n) result[n] = 1 / (factorial *= n);
  return result;
}();

struct sine_and_cosine {
  double sine;
  double cosine;
};

// |angle| <= 2^30. The error is that of the angle, about 2^-53 of it, and 2e-16.
inline sine_and_cosine sine_and_cosine_of(double angle) {
  const double quarters = std::nearbyint(angle * (2 / std::numbers::pi));
  // pi / 2 in parts of 23 bits, so that products with 30 bits are exact.
  double rest = angle - quarters * 0x1.921fb4p+0;
  rest -= quarters * 0x1.4442dp-24;
  rest -= quarters * 0x1.846988p-48;
  rest -= quarters * 0x1.8cc51701b839ap-72;
  // |rest| <= pi / 4: Taylor's series.
  const double square = rest * rest;
  double sine = inverse_factorials[17], cosine = inverse_factorials[16];
  for (int n = 15; n >= 1; n -= 2) {
    sine = inverse_factorials[n] - square * sine;
    cosine = inverse_factorials[n - 1] - square * cosine;
  }
  sine *= rest;
  switch (static_cast<long long>(quarters) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

// ln 2 in two parts, the first of 32 bits.
inline constexpr double ln2_high = 0x1.62e42feep-1;
inline constexpr double ln2_low = 0x1.a39ef35793c76p-33;

// Natural, of a positive and finite number.
inline double logarithm(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  // ln m = 2 artanh(s), |s| <= 0.172.
  const double s = (mantissa - 1) / (mantissa + 1);
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = 1.0 / n + s * s * sum;
  return exponent * ln2_high + (exponent * ln2_low + 2 * s * sum);
}

// e^x for |x| <= 710.
inline double exponential(double x) {
  const double n = std::nearbyint(x * std::numbers::log2e);
  const double rest = (x - n * ln2_high) - n * ln2_low;
  double sum = 0;
  for (int k = 14; k >= 0; --k) sum = inverse_factorials[k] + rest * sum;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace qkv::kernels
