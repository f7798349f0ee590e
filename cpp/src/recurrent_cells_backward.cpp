#include "recurrent_cells_backward.hpp"

#include "kernels/gru_backward_row.hpp"
#include "kernels/lstm_backward_row.hpp"
#include "kernels/rnn_backward_row.hpp"
#include "recurrent_gates.hpp"

namespace qkv {

namespace {

void rnn_step_back(const recurrent_options& options, const recurrent_step_back& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  for (extent r = 0; r < step.rows; ++r) {
    kernels::rnn_backward_row(step.trace.gates + r * hidden, options.relu, hidden,
                              step.d_h + r * stride);
  }
}

void lstm_step_back(const recurrent_options& options, const recurrent_weights_back& weights,
                    const recurrent_step_back& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  const kernels::lstm_peephole_sums sums{step.d_peephole, step.d_peephole + stride,
                                         step.d_peephole + 2 * stride};
  for (extent r = 0; r < step.rows; ++r) {
    kernels::lstm_backward_row(
        lstm_gates_of(options, weights.peephole, step.trace.gates + r * 4 * hidden, hidden), sums,
        hidden, step.trace.inner + r * hidden, step.d_c + r * stride, step.d_h + r * stride);
  }
}

// to (rows, hidden) += d_a (rows, columns) . the transpose of their weights.
void multiply_back(const recurrent_step_back& step, const float* d_a, extent columns,
                   const kernels::panel_matrix& weights, float* to) {
  kernels::multiply_add({d_a, step.rows, columns}, weights, {to, state_stride(step.hidden)},
                        step.order);
}

// The reset gate's turn, where it comes before the product of n.
void reset_step_back(const recurrent_options& options, const recurrent_weights_back& weights,
                     const recurrent_step_back& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  std::fill_n(step.d_reset, step.rows * stride, 0.0f);
  multiply_back(step, step.trace.gates + 2 * hidden, 3 * hidden, weights.wh_candidate,
                step.d_reset);
  for (extent r = 0; r < step.rows; ++r) {
    kernels::gru_reset_backward_row(
        gru_gates_of(options, step.trace.gates + r * 3 * hidden, hidden).reset,
        step.d_reset + r * stride, hidden, step.trace.h + r * hidden, step.d_h + r * stride);
  }
}

void gru_step_back(const recurrent_options& options, const recurrent_weights_back& weights,
                   const recurrent_step_back& step) {
  const extent hidden = step.hidden, stride = state_stride(hidden);
  const auto& [gates, h, recurrent] = step.trace;
  for (extent r = 0; r < step.rows; ++r) {
    kernels::gru_backward_row(gru_gates_of(options, gates + r * 3 * hidden, hidden),
                              options.reset_after ? recurrent + r * hidden : nullptr, hidden,
                              h + r * hidden, step.d_h + r * stride);
  }
  if (options.reset_after) {
    multiply_back(step, recurrent, hidden, weights.wh_candidate, step.d_h);
  } else {
    reset_step_back(options, weights, step);
  }
}

}  // namespace

void take_step_back(const recurrent_options& options, const recurrent_weights_back& weights,
                    const recurrent_step_back& step) {
  switch (options.cell) {
    case recurrent_cell::rnn:
      rnn_step_back(options, step);
      break;
    case recurrent_cell::lstm:
      lstm_step_back(options, weights, step);
      break;
    case recurrent_cell::gru:
      gru_step_back(options, weights, step);
      break;
  }
  multiply_back(step, step.trace.gates, gates_of(options.cell) * step.hidden, weights.wh, step.d_h);
}

}  // namespace qkv
