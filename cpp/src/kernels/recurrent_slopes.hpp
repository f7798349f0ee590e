// Slopes by what the functions came to, and what they are multiplied with.
#pragma once

#include "kernels/simd.hpp"

namespace qkv::kernels {

inline simd::batch tanh_slope(simd::batch y) { return simd::broadcast(1.0f) - y * y; }

inline simd::batch sigmoid_slope(simd::batch y) { return y * (simd::broadcast(1.0f) - y); }

// Over many steps a gradient may shrink to denormal numbers, with which a step takes several times
// as long; one as small as this has been lost in the sums over time before.
inline simd::batch drop_tiny(simd::batch d) {
  return xsimd::select(xsimd::abs(d) < simd::broadcast(0x1p-100f), simd::zero(), d);
}

}  // namespace qkv::kernels
