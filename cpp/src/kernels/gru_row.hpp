// The gates of one gated recurrent unit; see rnn_row.hpp.
#pragma once

#include "kernels/vmath.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

// What goes into the gates of a row.
struct gru_gates {
  const float *reset, *update, *candidate;
};

// reset_state = sigmoid(r) h: what the candidate's weights see where the reset comes before them.
[[gnu::noinline]] inline void gru_reset_row(const float* reset, extent hidden, const float* h,
                                            float* reset_state) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    simd::store(reset_state + j, simd::sigmoid(simd::load(reset + j)) * simd::load(h + j));
  }
}

// h = (1 - z) tanh(n) + z h with z = sigmoid(update). n is the candidate's row, and where the reset
// comes after the product, which is then `recurrent`, plus sigmoid(r) recurrent.
[[gnu::noinline]] inline void gru_row(const gru_gates& gates, const float* recurrent, extent hidden,
                                      float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    simd::batch sum = simd::load(gates.candidate + j);
    if (recurrent != nullptr) {
      const simd::batch reset = simd::sigmoid(simd::load(gates.reset + j));
      sum = simd::madd(reset, simd::load(recurrent + j), sum);
    }
    const simd::batch update = simd::sigmoid(simd::load(gates.update + j));
    const simd::batch fresh = (simd::broadcast(1.0f) - update) * simd::tanh(sum);
    simd::store(h + j, simd::madd(update, simd::load(h + j), fresh));
  }
}

}  // namespace qkv::kernels
