// The way back through the gates of one long short-term memory; see rnn_backward_row.hpp.
#pragma once

#include "kernels/lstm_row.hpp"
#include "kernels/recurrent_slopes.hpp"

namespace qkv::kernels {

// Where the peepholes' gradients are added up, with room for whole batches.
struct lstm_peephole_sums {
  float *input, *forget, *output;
};

[[gnu::always_inline]] inline void add_product(simd::batch a, simd::batch b, float* sum) {
  simd::store(sum, simd::madd(a, b, simd::load(sum)));
}

// gates: what they came to; become what the loss says of their sums. c: the old one, from which the
// new one comes again with the bits it had. d_c: by the new c, becomes that by the old one. d_h:
// becomes zeros.
[[gnu::noinline]] inline void lstm_backward_row(const lstm_gates& gates,
                                                const lstm_peephole_sums& sums, extent hidden,
                                                const float* c, float* d_c, float* d_h) {
  const bool peeps = gates.input_peephole != nullptr;
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    const simd::batch input = load_row(gates.input + j, count);
    const simd::batch forget = load_row(gates.forget + j, count);
    const simd::batch candidate = load_row(gates.candidate + j, count);
    const simd::batch output = load_row(gates.output + j, count);
    const simd::batch before = load_row(c + j, count);
    const simd::batch after = simd::madd(forget, before, input * candidate);
    const simd::batch tangent = simd::tanh(after);

    const simd::batch d = drop_tiny(simd::load(d_h + j));
    const simd::batch d_output = d * tangent * sigmoid_slope(output);
    simd::batch d_after =
        simd::madd(d * output, tanh_slope(tangent), drop_tiny(simd::load(d_c + j)));
    if (peeps) {
      d_after = simd::madd(d_output, simd::load(gates.output_peephole + j), d_after);
    }
    const simd::batch d_input = d_after * candidate * sigmoid_slope(input);
    const simd::batch d_forget = d_after * before * sigmoid_slope(forget);
    simd::batch d_before = d_after * forget;
    if (peeps) {
      d_before = simd::madd(d_input, simd::load(gates.input_peephole + j), d_before);
      d_before = simd::madd(d_forget, simd::load(gates.forget_peephole + j), d_before);
      add_product(d_input, before, sums.input + j);
      add_product(d_forget, before, sums.forget + j);
      add_product(d_output, after, sums.output + j);
    }
    simd::store(d_c + j, d_before);
    simd::store(d_h + j, simd::zero());
    store_row(gates.input + j, count, d_input);
    store_row(gates.forget + j, count, d_forget);
    store_row(gates.candidate + j, count, d_after * input * tanh_slope(candidate));
    store_row(gates.output + j, count, d_output);
  }
}

}  // namespace qkv::kernels
