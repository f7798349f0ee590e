// Activations of whole rows, in place.
#pragma once

#include <algorithm>

#include "kernels/simd.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

inline void tanh_row(float* row, extent count) {
  extent i = 0;
  for (; i + simd::lanes <= count; i += simd::lanes) {
    simd::store(row + i, simd::tanh(simd::load(row + i)));
  }
  if (i == count) return;
  float lane[simd::lanes] = {};
  std::copy_n(row + i, count - i, lane);
  simd::store(lane, simd::tanh(simd::load(lane)));
  std::copy_n(lane, count - i, row + i);
}

}  // namespace qkv::kernels
