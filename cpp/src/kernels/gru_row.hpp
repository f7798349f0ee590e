// The gates of one gated recurrent unit; see rnn_row.hpp.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// The gates of a row: what goes into them, and with `keep` afterwards what they came to.
struct gru_gates {
  float *reset, *update, *candidate;
};

// reset_state = sigmoid(r) h: what the candidate's weights see where the reset comes before them.
[[gnu::noinline]] inline void gru_reset_row(float* reset, extent hidden, bool keep, const float* h,
                                            float* reset_state) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const simd::batch gate = simd::sigmoid(load_row(reset + j, hidden - j));
    simd::store(reset_state + j, gate * simd::load(h + j));
    if (keep) store_row(reset + j, hidden - j, gate);
  }
}

// h = (1 - z) tanh(n) + z h with z = sigmoid(update). n is the candidate's row, and where the reset
// comes after the product, which is then `recurrent`, plus sigmoid(r) recurrent.
[[gnu::noinline]] inline void gru_row(const gru_gates& gates, const float* recurrent, extent hidden,
                                      bool keep, float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    simd::batch sum = load_row(gates.candidate + j, count);
    if (recurrent != nullptr) {
      const simd::batch reset = simd::sigmoid(load_row(gates.reset + j, count));
      sum = simd::madd(reset, simd::load(recurrent + j), sum);
      if (keep) store_row(gates.reset + j, count, reset);
    }
    const simd::batch update = simd::sigmoid(load_row(gates.update + j, count));
    const simd::batch candidate = simd::tanh(sum);
    const simd::batch fresh = (simd::broadcast(1.0f) - update) * candidate;
    simd::store(h + j, simd::madd(update, simd::load(h + j), fresh));
    if (keep) {
      store_row(gates.update + j, count, update);
      store_row(gates.candidate + j, count, candidate);
    }
  }
}

}  // namespace qkv::kernels
