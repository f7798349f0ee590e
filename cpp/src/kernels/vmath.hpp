// Elementary functions on batches, to float accuracy.
#pragma once

#include <bit>

#include "kernels/simd.hpp"

namespace qkv::simd {

// e^x for x <= 0, which is all that a softmax needs once its maximum is subtracted.
//
// x = n ln 2 + r with n whole and |r| <= ln 2 / 2, so e^x = 2^n e^r; e^r is a polynomial whose
// coefficients are the Cephes library's (expf). A result below 2^-100 is exactly 0: it is far below
// what a float sum that holds a 1 can resolve, but its products would be denormal numbers, on which
// processors are ten times slower and which WebAssembly cannot flush.
// NaN stays NaN and -Infinity gives 0. Error: below 1.5 units in the last place.
inline batch exp_nonpositive(batch x) {
  // Adding 1.5 * 2^23 rounds to whole numbers and leaves n in the low bits of the sum.
  const batch rounder = broadcast(12582912.0f);
  const batch shifted = madd(x, broadcast(1.44269504088896341f), rounder);
  const batch n = shifted - rounder;
  // ln 2 in two parts: the first has few bits, so that n times it is exact.
  batch r = madd(n, broadcast(-0.693359375f), x);
  r = madd(n, broadcast(2.12194440e-4f), r);
  batch p = broadcast(1.9875691500e-4f);
  p = madd(p, r, broadcast(1.3981999507e-3f));
  p = madd(p, r, broadcast(8.3334519073e-3f));
  p = madd(p, r, broadcast(4.1665795894e-2f));
  p = madd(p, r, broadcast(1.6666665459e-1f));
  p = madd(p, r, broadcast(5.0000001201e-1f));
  p = madd(p, r * r, r) + broadcast(1.0f);
  // 2^n by its exponent bits. A product, not an addition to the bits of p, keeps NaN a NaN.
  const int_batch exponent = xsimd::bitwise_cast<int32_t>(shifted) << 23;
  const batch power =
      xsimd::bitwise_cast<float>(exponent + int_batch(std::bit_cast<int32_t>(1.0f)));
  constexpr float log_smallest = -69.3147181f;
  return xsimd::select(x < broadcast(log_smallest), zero(), p * power);
}

}  // namespace qkv::simd
