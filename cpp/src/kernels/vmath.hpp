// Elementary functions on batches, to float accuracy.
#pragma once

#include <bit>

#include "kernels/simd.hpp"

namespace qkv::simd {

// x = n ln 2 + r with n whole and |r| <= ln 2 / 2, so e^x = 2^n e^r; e^r is 1 + r + r^2 times a
// polynomial fitted by Remez's exchange to a relative error of 3e-9.
struct exponential_parts {
  batch shifted;     // n + 101 in its low bits
  batch r;           //
  batch polynomial;  // 2^26 times the one above

  // n + 101 as exponent bits is 2^(n - 26), and 0 where n is -101.
  batch power() const {
    return xsimd::bitwise_cast<float>(xsimd::bitwise_cast<int32_t>(shifted) << 23);
  }
};

[[gnu::always_inline]] inline exponential_parts split_exponential(batch x) {
  // Adding 1.5 * 2^23 rounds to whole numbers; 101 more, and the sum's low bits hold n + 101.
  const batch rounder = constant<12583013.0f>();
  const batch shifted = madd(x, constant<1.44269504088896341f>(), rounder);
  const batch n = shifted - rounder;
  // ln 2 in two parts: the first has few bits, so that n times it is exact.
  batch r = madd(n, constant<-0.693359375f>(), x);
  r = madd(n, constant<2.12194440e-4f>(), r);
  batch p = constant<0x1.6a2434p16f>();
  p = madd(p, r, constant<0x1.1239e2p19f>());
  p = madd(p, r, constant<0x1.5558f2p21f>());
  p = madd(p, r, constant<0x1.555492p23f>());
  p = madd(p, r, constant<0x1.fffffcp24f>());
  return {shifted, r, p};
}

// e^x for x <= 0, which is all that a softmax needs once its maximum is subtracted.
//
// Below 2^-100.5 the result is exactly 0: it is far below what a float sum that holds a 1 can
// resolve, but its products would be denormal numbers, on which processors are ten times slower and
// which WebAssembly cannot flush. NaN stays NaN, since 2^n comes in by a product and not by an
// addition to bits, and -Infinity gives 0. Error: below 1.5 units in the last place.
inline batch exp_nonpositive(batch x) {
  const exponential_parts parts = split_exponential(max(x, constant<-70.0078652f>()));
  batch p = madd(parts.polynomial, parts.r, constant<0x1p26f>());
  p = madd(p, parts.r, constant<0x1p26f>());
  return p * parts.power();
}

// (1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x. 1 - e^-2|x| comes from the parts of the power,
// so that it keeps its digits near 0: |tanh x| is then relatively exact, and x where x is tiny.
inline batch tanh(batch x) {
  // From 10 on the result is 1. NaN stays NaN.
  const exponential_parts parts =
      split_exponential(max(constant<-2.0f>() * xsimd::abs(x), constant<-20.0f>()));
  const batch power = parts.power();
  const batch rest = madd(parts.polynomial, parts.r, constant<0x1p26f>()) * parts.r;
  const batch power_less_1 = madd(rest, power, madd(power, constant<0x1p26f>(), constant<-1.0f>()));
  return xsimd::copysign(power_less_1 / (constant<2.0f>() + power_less_1), x);
}

// 1 / (1 + e^-x), relatively exact on both sides; 0 where it is below 2^-100.
inline batch sigmoid(batch x) {
  const batch power = exp_nonpositive(-xsimd::abs(x));
  return xsimd::select(x < zero(), power, constant<1.0f>()) / (constant<1.0f>() + power);
}

// e^(-a^2 / 2), relatively exact; 0 where it is below 2^-100. 0 <= a <= 16.
inline batch bell_curve(batch a) {
  // a^2 = square + rest: half a unit in the last place of 100 would be 4e-6 of the result. The
  // square of the leading 12 bits is exact.
  const batch leading =
      xsimd::bitwise_cast<float>(xsimd::bitwise_cast<int32_t>(a) & int_batch(~0xfff));
  const batch square = a * a;
  const batch rest = (leading * leading - square) + (a - leading) * (a + leading);
  const batch power = exp_nonpositive(constant<-0.5f>() * square);
  return power * (constant<1.0f>() - constant<0.5f>() * rest);
}

// min(|x|, 16), beyond which the tails of the bell curve are 0 and Infinity would turn into NaN on
// the way.
inline batch bell_distance(batch x) { return -max(-xsimd::abs(x), constant<-16.0f>()); }

// The share of the normal distribution below x, (1 + erf(x / sqrt 2)) / 2, relatively exact on both
// sides, where 1 + erf would have no digits left; 0 where it is below 2^-100.
//
// With a = |x| the tail beyond a is e^(-a^2 / 2) q(a); q falls slowly from 1/2 and is t times a
// polynomial of t = 1 / (1 + 0.3 a), fitted over a in [0, 12] to a relative error of 4e-9.
inline batch normal_distribution(batch x) {
  const batch a = bell_distance(x);
  const batch t = constant<1.0f>() / (constant<1.0f>() + constant<0.3f>() * a);
  batch q = constant<-0.020465446437332252f>();
  q = madd(q, t, constant<0.11154315682401815f>());
  q = madd(q, t, constant<-0.22602400721408972f>());
  q = madd(q, t, constant<0.18872704950457936f>());
  q = madd(q, t, constant<-0.07675074955418454f>());
  q = madd(q, t, constant<0.09464303036226664f>());
  q = madd(q, t, constant<0.07894404423941077f>());
  q = madd(q, t, constant<0.11010908329211298f>());
  q = madd(q, t, constant<0.1195880410664118f>());
  q = madd(q, t, constant<0.11968579627223278f>());
  const batch tail = bell_curve(a) * (t * q);
  return xsimd::select(x < zero(), tail, constant<1.0f>() - tail);
}

}  // namespace qkv::simd
