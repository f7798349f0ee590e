// The seam to the machine: the only file that knows xsimd or an instruction set. Everything else
// says simd::madd and gets the best multiply-add that the build allows.
#pragma once

#include <xsimd/xsimd.hpp>

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

namespace qkv::simd {

using batch = xsimd::batch<float>;
using int_batch = xsimd::batch<int32_t>;

inline constexpr int lanes = batch::size;

inline batch load(const float* from) { return batch::load_unaligned(from); }
inline void store(float* to, batch value) { value.store_unaligned(to); }
inline batch broadcast(float value) { return batch(value); }
inline batch zero() { return batch(0.0f); }

// A constant for hot loops. In wasm it comes from memory: V8 builds a constant of the code anew at
// each use, in three instructions, while a loaded one stays in its register or costs one load. The
// numbers are variables so that no compiler turns the load back into a constant.
template <float Value>
inline float in_memory = Value;

template <float Value>
batch constant() {
#if defined(__wasm_simd128__)
  return broadcast(in_memory<Value>);
#else
  return broadcast(Value);
#endif
}

// a * b + c. Relaxed SIMD lets the host fuse it (one rounding); the plain wasm build never fuses,
// so its bits are the same on every host. xsimd has no relaxed instructions, hence our own.
inline batch madd(batch a, batch b, batch c) {
#if defined(__wasm_relaxed_simd__)
  return wasm_f32x4_relaxed_madd(a, b, c);
#elif defined(__wasm_simd128__)
  return a * b + c;
#else
  return xsimd::fma(a, b, c);
#endif
}

// The larger of both; `a` where `b` is NaN. f32x4.max would have to order NaN and -0 and costs
// seven instructions on x86, pmax costs one.
inline batch max(batch a, batch b) {
#if defined(__wasm_simd128__)
  return wasm_f32x4_pmax(a, b);
#else
  return xsimd::select(a < b, b, a);
#endif
}

// `lanes` rows of `lanes` numbers become columns.
inline void transpose(batch (&rows)[lanes]) { xsimd::transpose(rows, rows + lanes); }

// first, first + 1, ...
inline int_batch counting(std::int32_t first) {
  std::int32_t lane[lanes];
  for (int i = 0; i < lanes; ++i) lane[i] = first + i;
  return int_batch::load_unaligned(lane);
}

inline batch to_float(int_batch value) { return xsimd::to_float(value); }

inline float first_lane(batch value) {
  float lane[lanes];
  store(lane, value);
  return lane[0];
}

// Sums and maxima across lanes, in lane order, so that the result is the same on every host.
inline float sum_lanes(batch value) {
  float lane[lanes];
  store(lane, value);
  float sum = lane[0];
  for (int i = 1; i < lanes; ++i) sum += lane[i];
  return sum;
}

inline float max_lanes(batch value) {
  float lane[lanes];
  store(lane, value);
  float largest = lane[0];
  for (int i = 1; i < lanes; ++i) largest = lane[i] > largest ? lane[i] : largest;
  return largest;
}

}  // namespace qkv::simd
