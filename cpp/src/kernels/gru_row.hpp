// The gates of one gated recurrent unit.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// What goes into the gates of a row, `hidden` numbers each.
struct gru_gates {
  const float *reset, *update, *candidate;
};

// reset_state = sigmoid(r) h: what the candidate's weights see where the reset comes before them.
inline void gru_reset_row(const float* reset, extent hidden, const float* h, float* reset_state) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent left = hidden - j;
    store_row(reset_state + j, left,
              simd::sigmoid(load_row(reset + j, left, 0.0f)) * load_row(h + j, left, 0.0f));
  }
}

// h = (1 - z) tanh(n) + z h with z = sigmoid(update). n is the candidate's row, and where the reset
// comes after the product, which is then `recurrent`, plus sigmoid(r) recurrent.
inline void gru_row(const gru_gates& gates, const float* recurrent, extent hidden, float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent left = hidden - j;
    simd::batch sum = load_row(gates.candidate + j, left, 0.0f);
    if (recurrent != nullptr) {
      const simd::batch reset = simd::sigmoid(load_row(gates.reset + j, left, 0.0f));
      sum = simd::madd(reset, load_row(recurrent + j, left, 0.0f), sum);
    }
    const simd::batch update = simd::sigmoid(load_row(gates.update + j, left, 0.0f));
    const simd::batch fresh = (simd::broadcast(1.0f) - update) * simd::tanh(sum);
    store_row(h + j, left, simd::madd(update, load_row(h + j, left, 0.0f), fresh));
  }
}

}  // namespace qkv::kernels
