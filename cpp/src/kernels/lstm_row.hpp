// The gates of one long short-term memory, all in one pass over the row; see rnn_row.hpp.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// The gates of a row: what goes into them, and with `keep` afterwards what they came to. The
// peepholes are all there, or none is.
struct lstm_gates {
  float *input, *forget, *candidate, *output;
  const float *input_peephole, *forget_peephole, *output_peephole;
};

// c = sigmoid(f + pf c) c + sigmoid(i + pi c) tanh(g), h = sigmoid(o + po c) tanh(c).
[[gnu::noinline]] inline void lstm_row(const lstm_gates& gates, extent hidden, bool keep, float* c,
                                       float* h) {
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent count = hidden - j;
    simd::batch input = load_row(gates.input + j, count);
    simd::batch forget = load_row(gates.forget + j, count);
    simd::batch output = load_row(gates.output + j, count);
    const simd::batch before = simd::load(c + j);
    if (gates.input_peephole != nullptr) {
      input = simd::madd(simd::load(gates.input_peephole + j), before, input);
      forget = simd::madd(simd::load(gates.forget_peephole + j), before, forget);
    }
    input = simd::sigmoid(input);
    forget = simd::sigmoid(forget);
    const simd::batch candidate = simd::tanh(load_row(gates.candidate + j, count));
    const simd::batch after = simd::madd(forget, before, input * candidate);
    if (gates.output_peephole != nullptr) {
      output = simd::madd(simd::load(gates.output_peephole + j), after, output);
    }
    output = simd::sigmoid(output);
    simd::store(c + j, after);
    simd::store(h + j, output * simd::tanh(after));
    if (keep) {
      store_row(gates.input + j, count, input);
      store_row(gates.forget + j, count, forget);
      store_row(gates.candidate + j, count, candidate);
      store_row(gates.output + j, count, output);
    }
  }
}

}  // namespace qkv::kernels
