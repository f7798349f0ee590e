// Recurrent networks over whole sequences, attention's baselines:
//
//   rnn   h = tanh(a), or max(0, a)                                          (Elman, 1990)
//   lstm  i, f, o = sigmoid(a_i), sigmoid(a_f), sigmoid(a_o), g = tanh(a_g)
//         c = f c + i g, h = o tanh(c)               (Hochreiter & Schmidhuber, 1997; Gers, 2000)
//   gru   r, z = sigmoid(a_r), sigmoid(a_z), n = tanh(a_n)
//         h = (1 - z) n + z h                                                (Cho et al., 2014)
//
// with a = x_t . wx + bx + h_(t-1) . wh + bh, of which each gate has `hidden` columns. The columns
// n of a GRU are x_t . wx + bx + r (h . wh + bh) with reset_after, else x_t . wx + bx + (r h) . wh
// + bh. Peepholes (Gers & Schmidhuber, 2000) add p_i c and p_f c of the old c to a_i and a_f, and
// p_o c of the new one to a_o.
#pragma once

#include <array>
#include <cstdint>

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

enum class recurrent_cell { rnn, lstm, gru };

// `reverse` reads each sequence from its last valid step to its first.
enum class recurrent_direction { forward, reverse, both };

// Of the gates in weights and biases. own: i f g o and r z n; onnx: i o f g and z r n.
enum class recurrent_gate_order { own, onnx };

constexpr extent gates_of(recurrent_cell cell) {
  return cell == recurrent_cell::rnn ? 1 : cell == recurrent_cell::lstm ? 4 : 3;
}
constexpr extent directions_of(recurrent_direction direction) {
  return direction == recurrent_direction::both ? 2 : 1;
}

struct recurrent_options {
  recurrent_cell cell = recurrent_cell::rnn;
  recurrent_direction direction = recurrent_direction::forward;
  recurrent_gate_order gate_order = recurrent_gate_order::own;
  bool reset_after = true;  // gru
  bool relu = false;        // rnn: max(0, a) in place of tanh(a)
};

// What one direction learns.
struct recurrent_parameters {
  view<const float, 2> wx;          // (input_dim, gates * hidden)
  view<const float, 2> wh;          // (hidden, gates * hidden)
  const float* bx = nullptr;        // gates * hidden floats each, or null
  const float* bh = nullptr;        //
  const float* peephole = nullptr;  // lstm: 3 * hidden floats, i f o in every gate order, or null
};

struct recurrent_inputs {
  view<const float, 3> x;                 // (batch, length, input_dim)
  view<const float, 3> h0 = {};           // (directions, batch, hidden), or empty for zeros
  view<const float, 3> c0 = {};           // lstm: the same
  const std::int32_t* lengths = nullptr;  // valid steps of each sequence, or null for all
};

struct recurrent_outputs {
  view<float, 3> outputs;  // (batch, length, directions * hidden): every h, in time order, forward
                           // first; zeros beyond a sequence's length
  view<float, 3> h;  // (directions, batch, hidden): after the last step that the direction took
  view<float, 3> c = {};  // lstm: the same
  // recurrent_trace_bytes() for recurrent_backward(), which alone can read them, or null. Writing
  // them changes no bit of the others.
  float* trace = nullptr;
};

struct recurrent_sizes {
  extent batch, length, input_dim, hidden;
};

byte_count recurrent_workspace_bytes(const recurrent_sizes& sizes, const recurrent_options& options,
                                     int workers);

// What each step's gates came to, and the states that they met.
byte_count recurrent_trace_bytes(const recurrent_sizes& sizes, const recurrent_options& options);

// `parameters` are those of the one direction, or of forward and reverse. A sequence of length 0
// keeps its initial state. A single step is a sequence of length 1; a sequence may be split in two
// with the states handed over: the bits stay the same, as they do for any batch and number of
// threads. Sequences and directions run side by side, steps one after another.
// Errors: shape_mismatch, invalid_argument (strides, a length outside [0, length], a peephole, c0
// or c that is not an lstm's), out_of_memory (a workspace too small).
status recurrent_forward(const recurrent_inputs& inputs,
                         const std::array<recurrent_parameters, 2>& parameters,
                         const recurrent_options& options, const recurrent_outputs& outputs,
                         workspace memory, thread_pool& pool);

}  // namespace qkv
