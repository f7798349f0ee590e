// The way back through one step of each recurrent cell.
#pragma once

#include "recurrent_cells.hpp"
#include "recurrent_trace.hpp"

namespace qkv {

// What one direction's steps need on their way back.
struct recurrent_weights_back {
  kernels::panel_matrix wh;            // the transpose of all gates, but for a gru's n
  kernels::panel_matrix wh_candidate;  // that of a gru's n
  const float* peephole;               // as in recurrent_weights
};

// Some sequences at one step.
struct recurrent_step_back {
  trace_rows trace;   // the step's rows
  extent rows;        //
  extent hidden;      //
  float* d_h;         // (rows, state_stride): by the state after the step, and then before it
  float* d_c;         // lstm: the same
  float* d_reset;     // gru: the same of scratch
  float* d_peephole;  // lstm: (3, state_stride) that the step adds to, where there are peepholes
  kernels::panel_order order;
};

void take_step_back(const recurrent_options& options, const recurrent_weights_back& weights,
                    const recurrent_step_back& step);

}  // namespace qkv
