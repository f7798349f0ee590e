// The way back through the gates of one gated recurrent unit; see rnn_backward_row.hpp.
#pragma once

#include "kernels/gru_row.hpp"
#include "kernels/recurrent_slopes.hpp"

namespace qkv::kernels {

// gates: what they came to; become what the loss says of their sums. h: the old one. d_h: by the
// new h, becomes what passes on by the update gate. recurrent: the product that the reset gate
// scales, becomes what the loss says of it; null where the reset comes before the product, whose
// gate is then left to gru_reset_backward_row().
[[gnu::noinline]] inline void gru_backward_row(const gru_gates& gates, float* recurrent,
                                               extent hidden, const float* h, float* d_h) {
  const simd::batch one = simd::broadcast(1.0f);
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    const simd::batch update = load_row(gates.update + j, count);
    const simd::batch candidate = load_row(gates.candidate + j, count);
    const simd::batch d = drop_tiny(simd::load(d_h + j));
    const simd::batch d_candidate = d * (one - update) * tanh_slope(candidate);
    const simd::batch d_update = d * (load_row(h + j, count) - candidate);
    if (recurrent != nullptr) {
      const simd::batch reset = load_row(gates.reset + j, count);
      const simd::batch d_reset = d_candidate * load_row(recurrent + j, count);
      store_row(gates.reset + j, count, d_reset * sigmoid_slope(reset));
      store_row(recurrent + j, count, d_candidate * reset);
    }
    store_row(gates.update + j, count, d_update * sigmoid_slope(update));
    store_row(gates.candidate + j, count, d_candidate);
    simd::store(d_h + j, d * update);
  }
}

// reset: what the gate came to; becomes what the loss says of its sum. d_reset_state: by r h.
[[gnu::noinline]] inline void gru_reset_backward_row(float* reset, const float* d_reset_state,
                                                     extent hidden, const float* h, float* d_h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    const simd::batch gate = load_row(reset + j, count), d = simd::load(d_reset_state + j);
    const simd::batch d_gate = d * load_row(h + j, count);
    simd::store(d_h + j, simd::madd(d, gate, simd::load(d_h + j)));
    store_row(reset + j, count, d_gate * sigmoid_slope(gate));
  }
}

}  // namespace qkv::kernels
