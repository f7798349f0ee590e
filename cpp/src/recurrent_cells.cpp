#include "recurrent_cells.hpp"

#include "kernels/activation.hpp"
#include "kernels/gru_row.hpp"
#include "kernels/lstm_row.hpp"

namespace qkv {

namespace {

void rnn_step(const recurrent_options& options, const recurrent_step& step) {
  const extent count = step.rows * step.hidden;
  options.relu ? kernels::relu_row(step.gates, count, step.h)
               : kernels::tanh_row(step.gates, count, step.h);
}

void lstm_step(const recurrent_options& options, const recurrent_weights& weights,
               const recurrent_step& step) {
  const extent hidden = step.hidden;
  const bool own = options.gate_order == recurrent_gate_order::own;
  const float* peephole = weights.peephole;
  for (extent r = 0; r < step.rows; ++r) {
    const float* row = step.gates + r * 4 * hidden;
    kernels::lstm_gates gates{row, row + (own ? 1 : 2) * hidden, row + (own ? 2 : 3) * hidden,
                              row + (own ? 3 : 1) * hidden};
    if (peephole != nullptr) {
      gates.input_peephole = peephole;
      gates.forget_peephole = peephole + hidden;
      gates.output_peephole = peephole + 2 * hidden;
    }
    kernels::lstm_row(gates, hidden, step.c + r * hidden, step.h + r * hidden);
  }
}

kernels::gru_gates gru_gates_of(const recurrent_options& options, const recurrent_step& step,
                                extent r) {
  const float* row = step.gates + r * 3 * step.hidden;
  const float* second = row + step.hidden;
  const float* candidate = second + step.hidden;
  return options.gate_order == recurrent_gate_order::own
             ? kernels::gru_gates{row, second, candidate}
             : kernels::gru_gates{second, row, candidate};
}

void gru_step(const recurrent_options& options, const recurrent_weights& weights,
              const recurrent_step& step) {
  const extent hidden = step.hidden;
  const kernels::left_matrix state{step.h, step.rows, hidden};
  const kernels::left_matrix reset_state{step.candidate, step.rows, hidden};
  if (options.reset_after) {
    for (extent r = 0; r < step.rows; ++r) {
      float* row = step.candidate + r * hidden;
      weights.candidate_bias ? std::copy_n(weights.candidate_bias, hidden, row)
                             : std::fill_n(row, hidden, 0.0f);
    }
    kernels::multiply_add(state, weights.wh_candidate, {step.candidate, hidden}, step.scratch);
  } else {
    for (extent r = 0; r < step.rows; ++r) {
      kernels::gru_reset_row(gru_gates_of(options, step, r).reset, hidden, step.h + r * hidden,
                             step.candidate + r * hidden);
    }
    kernels::multiply_add(reset_state, weights.wh_candidate, {step.gates + 2 * hidden, 3 * hidden},
                          step.scratch);
  }
  for (extent r = 0; r < step.rows; ++r) {
    kernels::gru_row(gru_gates_of(options, step, r),
                     options.reset_after ? step.candidate + r * hidden : nullptr, hidden,
                     step.h + r * hidden);
  }
}

}  // namespace

void take_step(const recurrent_options& options, const recurrent_weights& weights,
               const recurrent_step& step) {
  const extent columns = gates_of(options.cell) * step.hidden;
  kernels::multiply_add({step.h, step.rows, step.hidden}, weights.wh, {step.gates, columns},
                        step.scratch);
  switch (options.cell) {
    case recurrent_cell::rnn:
      return rnn_step(options, step);
    case recurrent_cell::lstm:
      return lstm_step(options, weights, step);
    case recurrent_cell::gru:
      return gru_step(options, weights, step);
  }
}

}  // namespace qkv
