// Slopes by what the functions came to.
#pragma once

#include "kernels/simd.hpp"

namespace qkv::kernels {

inline simd::batch tanh_slope(simd::batch y) { return simd::broadcast(1.0f) - y * y; }

inline simd::batch sigmoid_slope(simd::batch y) { return y * (simd::broadcast(1.0f) - y); }

}  // namespace qkv::kernels
