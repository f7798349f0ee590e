// One plain recurrent network. As in the other cells' rows, whole batches are read and written: the
// state has room for them, and what lies behind the sums of a gate does not matter.
#pragma once

#include "kernels/vmath.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

// h = tanh(sum), or max(0, sum).
[[gnu::noinline]] inline void rnn_row(const float* sum, bool relu, extent hidden, float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const simd::batch x = simd::load(sum + j);
    simd::store(h + j, relu ? simd::max(x, simd::zero()) : simd::tanh(x));
  }
}

}  // namespace qkv::kernels
