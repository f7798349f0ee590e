// The way back through one plain recurrent network; see rnn_row.hpp. As in the other cells' rows,
// d_h and d_c have room for whole batches; the rows of a trace do not.
#pragma once

#include "kernels/recurrent_slopes.hpp"
#include "kernels/row.hpp"

namespace qkv::kernels {

// gate: h, becomes what the loss says of the sum. d_h becomes zeros: only the sum leads back.
[[gnu::noinline]] inline void rnn_backward_row(float* gate, bool relu, extent hidden, float* d_h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    const simd::batch h = load_row(gate + j, count), d = drop_tiny(simd::load(d_h + j));
    const simd::batch d_sum =
        relu ? xsimd::select(h > simd::zero(), d, simd::zero()) : d * tanh_slope(h);
    store_row(gate + j, count, d_sum);
    simd::store(d_h + j, simd::zero());
  }
}

}  // namespace qkv::kernels
