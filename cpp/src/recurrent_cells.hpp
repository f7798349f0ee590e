// One step of each recurrent cell.
#pragma once

#include "recurrent_plan.hpp"

namespace qkv {

// What one direction learns, ready for the steps.
struct recurrent_weights {
  kernels::panel_matrix wx;            // all gates
  kernels::panel_matrix wh;            // all gates, but for a gru's n
  kernels::panel_matrix wh_candidate;  // a gru's n
  const float* bias;                   // what the gates' sums start from
  const float* candidate_bias;         // bh of a gru's n with reset_after, or null
  const float* peephole;  // with `lanes` more floats behind them, as all that steps read
};

// Some sequences at one step.
struct recurrent_step {
  float* gates;      // (rows, gates * hidden): biases + x_t . wx; the step adds what the state says
  bool keep;         // leaves there what the gates came to
  extent rows;       //
  extent hidden;     //
  float* h;          // (rows, state_stride): the state before, and then after the step
  float* c;          // lstm: the same
  float* candidate;  // gru: the same of scratch
  kernels::panel_order order;
};

void take_step(const recurrent_options& options, const recurrent_weights& weights,
               const recurrent_step& step);

}  // namespace qkv
