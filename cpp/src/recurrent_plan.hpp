// What the forward and the backward pass of recurrent cells have in common before they start.
#pragma once

#include "kernels/panel_product.hpp"
#include "qkv/recurrent.hpp"

namespace qkv {

// Sequences whose steps are taken together: a step then reads the weights once for all of them.
inline constexpr extent sequence_group = 8;

struct recurrent_plan {
  extent directions, batch, length, input_dim, hidden;
  extent columns;     // of all gates
  extent candidates;  // columns of wh that a step multiplies apart from the others: a gru's n

  recurrent_plan(const recurrent_sizes& sizes, const recurrent_options& options)
      : directions(directions_of(options.direction)),
        batch(sizes.batch),
        length(sizes.length),
        input_dim(sizes.input_dim),
        hidden(sizes.hidden),
        columns(gates_of(options.cell) * sizes.hidden),
        candidates(options.cell == recurrent_cell::gru ? sizes.hidden : 0) {}

  extent groups() const { return kernels::panels(batch, sequence_group); }

  std::array<extent, 3> state_shape() const { return {directions, batch, hidden}; }
  std::array<extent, 3> output_shape() const { return {batch, length, directions * hidden}; }
};

// Of the whole problem but what comes out of it.
status check_recurrent(const recurrent_inputs& inputs,
                       const std::array<recurrent_parameters, 2>& parameters,
                       const recurrent_options& options, const recurrent_plan& plan);

// Floats from one row of a state to the next: cells read and write whole batches.
inline extent state_stride(extent hidden) { return kernels::padded(hidden, simd::lanes); }

inline extent length_of(const recurrent_inputs& inputs, extent sequence) {
  return inputs.lengths != nullptr ? inputs.lengths[sequence] : inputs.x.shape[1];
}

inline bool is_reverse(const recurrent_options& options, extent direction) {
  return options.direction == recurrent_direction::reverse || direction == 1;
}

// Steps of all sequences before this one.
extent steps_before(const recurrent_inputs& inputs, extent sequence);

// The sequences of a group, the longest first: those that still have steps to take are then the
// first rows.
class step_order {
 public:
  step_order(const recurrent_inputs& inputs, bool reverse, extent begin, extent count)
      : inputs_(inputs), reverse_(reverse), count_(count) {
    for (extent i = 0; i < count; ++i) {
      const extent sequence = begin + i;
      extent r = i;
      for (; r > 0 && length_of(inputs, sequences_[r - 1]) < length_of(inputs, sequence); --r) {
        sequences_[r] = sequences_[r - 1];
      }
      sequences_[r] = sequence;
    }
  }

  extent count() const { return count_; }
  extent sequence(extent r) const { return sequences_[r]; }
  extent length(extent r) const { return length_of(inputs_, sequences_[r]); }
  extent longest() const { return length(0); }

  // Sequences that are longer than `step`.
  extent active(extent step) const {
    extent rows = count_;
    while (rows > 0 && length(rows - 1) <= step) --rows;
    return rows;
  }

  extent time(extent r, extent step) const { return reverse_ ? length(r) - 1 - step : step; }

 private:
  const recurrent_inputs& inputs_;
  bool reverse_;
  extent count_;
  std::array<extent, sequence_group> sequences_;
};

}  // namespace qkv
