// Where a forward pass leaves what its backward pass needs. Rows are steps in the order in which
// they are taken: group by group of sequences, step by step, sequence by sequence; there are none
// beyond a sequence's length, so that the gradients of weights are products over all of them.
#pragma once

#include "recurrent_plan.hpp"

namespace qkv {

// From some row of a direction on; each piece has `lanes` more floats behind its last row.
struct trace_rows {
  float* gates = nullptr;  // (rows, gates * hidden): what they came to, later d_a
  float* h = nullptr;      // (rows, hidden): the state that the step met
  // (rows, hidden). lstm: c that the step met. gru: with reset_after h . wh + bh of n, later what
  // the loss says of it; without, r h. rnn: nothing.
  float* inner = nullptr;

  explicit operator bool() const { return gates != nullptr; }

  trace_rows from(extent row, extent columns, extent hidden) const {
    return {gates + row * columns, h + row * hidden, inner + row * hidden};
  }
};

class recurrent_trace {
 public:
  explicit recurrent_trace(const recurrent_plan& plan)
      : columns_(plan.columns),
        hidden_(plan.hidden),
        gates_(floats_for(plan, plan.columns)),
        states_(floats_for(plan, plan.hidden)) {}

  byte_count bytes(extent directions) const {
    return static_cast<byte_count>(directions) * direction_floats() * sizeof(float);
  }

  trace_rows at(float* trace, extent direction, extent row) const {
    float* gates = trace + static_cast<byte_count>(direction) * direction_floats();
    float* h = gates + gates_;
    return trace_rows{gates, h, h + states_}.from(row, columns_, hidden_);
  }

 private:
  static byte_count floats_for(const recurrent_plan& plan, extent columns) {
    return static_cast<byte_count>(plan.batch) * static_cast<byte_count>(plan.length) *
               static_cast<byte_count>(columns) +
           simd::lanes;
  }
  byte_count direction_floats() const { return gates_ + 2 * states_; }

  extent columns_, hidden_;
  byte_count gates_, states_;  // floats of a piece
};

}  // namespace qkv
