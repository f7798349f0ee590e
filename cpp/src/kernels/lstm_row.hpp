// The gates of one long short-term memory, all in one pass over the row; see rnn_row.hpp.
#pragma once

#include "kernels/vmath.hpp"
#include "qkv/view.hpp"

namespace qkv::kernels {

// What goes into the gates of a row; the peepholes are all there, or none is.
struct lstm_gates {
  const float *input, *forget, *candidate, *output;
  const float *input_peephole, *forget_peephole, *output_peephole;
};

// c = sigmoid(f + pf c) c + sigmoid(i + pi c) tanh(g), h = sigmoid(o + po c) tanh(c).
[[gnu::noinline]] inline void lstm_row(const lstm_gates& gates, extent hidden, float* c, float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    simd::batch input = simd::load(gates.input + j);
    simd::batch forget = simd::load(gates.forget + j);
    simd::batch output = simd::load(gates.output + j);
    const simd::batch before = simd::load(c + j);
    if (gates.input_peephole != nullptr) {
      input = simd::madd(simd::load(gates.input_peephole + j), before, input);
      forget = simd::madd(simd::load(gates.forget_peephole + j), before, forget);
    }
    const simd::batch candidate = simd::tanh(simd::load(gates.candidate + j));
    const simd::batch after =
        simd::madd(simd::sigmoid(forget), before, simd::sigmoid(input) * candidate);
    if (gates.output_peephole != nullptr) {
      output = simd::madd(simd::load(gates.output_peephole + j), after, output);
    }
    simd::store(c + j, after);
    simd::store(h + j, simd::sigmoid(output) * simd::tanh(after));
  }
}

}  // namespace qkv::kernels
