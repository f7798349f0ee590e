// One plain recurrent network. As in the other cells' rows, whole batches of the state are read and
// written, which has room for them; the gates lie next to each other, and behind the last of them
// another thread may be writing its own.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// h = tanh(sum), or max(0, sum).
[[gnu::noinline]] inline void rnn_row(const float* sum, bool relu, extent hidden, float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const simd::batch x = load_row(sum + j, hidden - j);
    simd::store(h + j, relu ? simd::max(x, simd::zero()) : simd::tanh(x));
  }
}

}  // namespace qkv::kernels
