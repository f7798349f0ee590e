// Where the gates of a row lie.
#pragma once

#include "kernels/gru_row.hpp"
#include "kernels/lstm_row.hpp"
#include "qkv/recurrent.hpp"

namespace qkv {

// row: 4 * hidden floats. peephole: null, or i, f, o.
inline kernels::lstm_gates lstm_gates_of(const recurrent_options& options, const float* peephole,
                                         float* row, extent hidden) {
  const bool own = options.gate_order == recurrent_gate_order::own;
  const auto gate = [&](extent at) { return row + at * hidden; };
  const auto peep = [&](extent at) { return peephole ? peephole + at * hidden : nullptr; };
  return {gate(0), gate(own ? 1 : 2), gate(own ? 2 : 3), gate(own ? 3 : 1), peep(0), peep(1),
          peep(2)};
}

// row: 3 * hidden floats.
inline kernels::gru_gates gru_gates_of(const recurrent_options& options, float* row,
                                       extent hidden) {
  const bool own = options.gate_order == recurrent_gate_order::own;
  return {row + (own ? 0 : hidden), row + (own ? hidden : 0), row + 2 * hidden};
}

}  // namespace qkv
