// The gates of one long short-term memory, all in one pass over the row.
#pragma once

#include "kernels/row.hpp"
#include "kernels/vmath.hpp"

namespace qkv::kernels {

// What goes into the gates of a row, `hidden` numbers each; peepholes may be null.
struct lstm_gates {
  const float *input, *forget, *candidate, *output;
  const float *input_peephole = nullptr, *forget_peephole = nullptr, *output_peephole = nullptr;
};

// c = sigmoid(f + pf c) c + sigmoid(i + pi c) tanh(g), h = sigmoid(o + po c) tanh(c).
inline void lstm_row(const lstm_gates& gates, extent hidden, float* c, float* h) {
  const bool peepholes = gates.input_peephole != nullptr;
  for (extent j = 0; j < hidden; j += simd::lanes) {
    const extent left = hidden - j;
    const auto gate = [&](const float* row, const float* peephole, simd::batch cell) {
      const simd::batch sum = load_row(row + j, left, 0.0f);
      return simd::sigmoid(peepholes ? simd::madd(load_row(peephole + j, left, 0.0f), cell, sum)
                                     : sum);
    };
    const simd::batch before = load_row(c + j, left, 0.0f);
    const simd::batch candidate = simd::tanh(load_row(gates.candidate + j, left, 0.0f));
    const simd::batch entering = gate(gates.input, gates.input_peephole, before) * candidate;
    const simd::batch kept = gate(gates.forget, gates.forget_peephole, before);
    const simd::batch after = simd::madd(kept, before, entering);
    store_row(c + j, left, after);
    store_row(h + j, left, gate(gates.output, gates.output_peephole, after) * simd::tanh(after));
  }
}

}  // namespace qkv::kernels
