#include "recurrent_cells.hpp"

#include "kernels/rnn_row.hpp"
#include "recurrent_gates.hpp"

namespace qkv {

namespace {

void rnn_step(const recurrent_options& options, const recurrent_step& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  for (extent r = 0; r < step.rows; ++r) {
    float* gate = step.gates + r * hidden;
    float* h = step.h + r * stride;
    kernels::rnn_row(gate, options.relu, hidden, h);
    if (step.keep) std::copy_n(h, hidden, gate);
  }
}

void lstm_step(const recurrent_options& options, const recurrent_weights& weights,
               const recurrent_step& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  for (extent r = 0; r < step.rows; ++r) {
    kernels::lstm_row(lstm_gates_of(options, weights.peephole, step.gates + r * 4 * hidden, hidden),
                      hidden, step.keep, step.c + r * stride, step.h + r * stride);
  }
}

kernels::gru_gates gru_gates_of(const recurrent_options& options, const recurrent_step& step,
                                extent r) {
  return gru_gates_of(options, step.gates + r * 3 * step.hidden, step.hidden);
}

void multiply_state(const recurrent_weights& weights, const recurrent_step& step, extent columns) {
  kernels::multiply_add({step.h, step.rows, state_stride(step.hidden)}, weights.wh,
                        {step.gates, columns}, step.order);
}

// With reset_after: the candidate's own product, bh + h . wh. Falling, it comes before the others.
void multiply_states(const recurrent_weights& weights, const recurrent_step& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  if (step.order == kernels::panel_order::rising) multiply_state(weights, step, 3 * hidden);
  for (extent r = 0; r < step.rows; ++r) {
    float* row = step.candidate + r * stride;
    weights.candidate_bias ? std::copy_n(weights.candidate_bias, hidden, row)
                           : std::fill_n(row, hidden, 0.0f);
  }
  kernels::multiply_add({step.h, step.rows, stride}, weights.wh_candidate, {step.candidate, stride},
                        step.order);
  if (step.order == kernels::panel_order::falling) multiply_state(weights, step, 3 * hidden);
}

void gru_step(const recurrent_options& options, const recurrent_weights& weights,
              const recurrent_step& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  if (options.reset_after) {
    multiply_states(weights, step);
  } else {
    multiply_state(weights, step, 3 * hidden);
    for (extent r = 0; r < step.rows; ++r) {
      kernels::gru_reset_row(gru_gates_of(options, step, r).reset, hidden, step.keep,
                             step.h + r * stride, step.candidate + r * stride);
    }
    kernels::multiply_add({step.candidate, step.rows, stride}, weights.wh_candidate,
                          {step.gates + 2 * hidden, 3 * hidden}, step.order);
  }
  for (extent r = 0; r < step.rows; ++r) {
    kernels::gru_row(gru_gates_of(options, step, r),
                     options.reset_after ? step.candidate + r * stride : nullptr, hidden, step.keep,
                     step.h + r * stride);
  }
}

}  // namespace

void take_step(const recurrent_options& options, const recurrent_weights& weights,
               const recurrent_step& step) {
  if (options.cell == recurrent_cell::gru) return gru_step(options, weights, step);
  multiply_state(weights, step, gates_of(options.cell) * step.hidden);
  options.cell == recurrent_cell::lstm ? lstm_step(options, weights, step)
                                       : rnn_step(options, step);
}

}  // namespace qkv
