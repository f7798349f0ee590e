#include "qkv/recurrent.hpp"

#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "qkv/recurrent_backward.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// Of a second direction names end in _2. trace: of the forward pass if one is wanted, and what the
// way back uses up, where d_outputs, d_h and d_c are what the loss's gradients by the outputs are.
// clang-format off
#define QKV_RECURRENT_CALL(integer)                                                            \
  integer(cell) integer(direction) integer(onnx_order) integer(reset_before) integer(relu)     \
  integer(batch) integer(length) integer(input_dim) integer(hidden) integer(lengths)           \
  integer(x) integer(h0) integer(c0) integer(outputs) integer(h) integer(c) integer(trace)     \
  integer(wx) integer(wh) integer(bx) integer(bh) integer(peephole)                            \
  integer(wx_2) integer(wh_2) integer(bx_2) integer(bh_2) integer(peephole_2)                  \
  integer(d_outputs) integer(d_h) integer(d_c) integer(d_x) integer(d_h0) integer(d_c0)        \
  integer(d_wx) integer(d_wh) integer(d_bx) integer(d_bh) integer(d_peephole)                  \
  integer(d_wx_2) integer(d_wh_2) integer(d_bx_2) integer(d_bh_2) integer(d_peephole_2)        \
  integer(workspace) integer(workspace_bytes)
// clang-format on

template <typename T, std::size_t Rank>
view<T, Rank> optional_view(address data, std::array<extent, Rank> shape) {
  return data == 0 ? view<T, Rank>{} : heap_view<T, Rank>(data, shape);
}

struct recurrent_call {
  QKV_RECURRENT_CALL(QKV_CALL_INT)

  recurrent_options options() const {
    return {static_cast<recurrent_cell>(cell), static_cast<recurrent_direction>(direction),
            onnx_order ? recurrent_gate_order::onnx : recurrent_gate_order::own, !reset_before,
            relu != 0};
  }

  recurrent_inputs inputs() const {
    return {heap_view<const float, 3>(x, {batch, length, input_dim}),
            optional_view<const float>(h0, state_shape()),
            optional_view<const float>(c0, state_shape()),
            heap_pointer<const std::int32_t>(lengths)};
  }

  std::array<recurrent_parameters, 2> parameters() const {
    const auto of = [&](address wx, address wh, address bx, address bh, address peephole) {
      return recurrent_parameters{heap_view<const float, 2>(wx, wx_shape()),
                                  heap_view<const float, 2>(wh, wh_shape()),
                                  heap_pointer<const float>(bx), heap_pointer<const float>(bh),
                                  heap_pointer<const float>(peephole)};
    };
    return {of(wx, wh, bx, bh, peephole), of(wx_2, wh_2, bx_2, bh_2, peephole_2)};
  }

  recurrent_outputs results() const {
    return {heap_view<float, 3>(outputs, output_shape()), heap_view<float, 3>(h, state_shape()),
            optional_view<float>(c, state_shape()), heap_pointer<float>(trace)};
  }

  recurrent_output_gradients output_gradients() const {
    return {optional_view<const float>(d_outputs, output_shape()),
            optional_view<const float>(d_h, state_shape()),
            optional_view<const float>(d_c, state_shape())};
  }

  recurrent_gradients gradients() const {
    const auto of = [&](address wx, address wh, address bx, address bh, address peephole) {
      return recurrent_parameter_gradients{
          optional_view<float>(wx, wx_shape()), optional_view<float>(wh, wh_shape()),
          heap_pointer<float>(bx), heap_pointer<float>(bh), heap_pointer<float>(peephole)};
    };
    return {
        optional_view<float, 3>(d_x, {batch, length, input_dim}),
        optional_view<float>(d_h0, state_shape()),
        optional_view<float>(d_c0, state_shape()),
        {of(d_wx, d_wh, d_bx, d_bh, d_peephole), of(d_wx_2, d_wh_2, d_bx_2, d_bh_2, d_peephole_2)}};
  }

 private:
  extent directions() const { return directions_of(options().direction); }
  extent columns() const { return gates_of(options().cell) * hidden; }
  std::array<extent, 3> state_shape() const { return {directions(), batch, hidden}; }
  std::array<extent, 3> output_shape() const { return {batch, length, directions() * hidden}; }
  std::array<extent, 2> wx_shape() const { return {input_dim, columns()}; }
  std::array<extent, 2> wh_shape() const { return {hidden, columns()}; }
};

int recurrent(std::uintptr_t at) {
  const auto& call = call_at<recurrent_call>(at);
  return static_cast<int>(
      recurrent_forward(call.inputs(), call.parameters(), call.options(), call.results(),
                        heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

int recurrent_back(std::uintptr_t at) {
  const auto& call = call_at<recurrent_call>(at);
  return static_cast<int>(
      recurrent_backward(call.inputs(), call.parameters(), call.options(),
                         heap_pointer<float>(call.trace), call.output_gradients(), call.gradients(),
                         heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t recurrent_layout() { return text_address(QKV_RECURRENT_CALL(QKV_LAYOUT_INT)); }

// What these take of a problem. Bytes are doubles, which hold more than 32 bits and are numbers in
// JavaScript.
recurrent_options kind(int cell, int direction) {
  return {.cell = static_cast<recurrent_cell>(cell),
          .direction = static_cast<recurrent_direction>(direction)};
}

double recurrent_bytes(int cell, int direction, extent batch, extent length, extent input_dim,
                       extent hidden) {
  return static_cast<double>(recurrent_workspace_bytes({batch, length, input_dim, hidden},
                                                       kind(cell, direction), pool().size()));
}

double trace_bytes(int cell, int direction, extent batch, extent length, extent input_dim,
                   extent hidden) {
  return static_cast<double>(
      recurrent_trace_bytes({batch, length, input_dim, hidden}, kind(cell, direction)));
}

double recurrent_backward_bytes(int cell, int direction, extent batch, extent length,
                                extent input_dim, extent hidden) {
  return static_cast<double>(recurrent_backward_workspace_bytes(
      {batch, length, input_dim, hidden}, kind(cell, direction), pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(recurrent) {
  using namespace qkv::bindings;
  emscripten::function("recurrent", &recurrent);
  emscripten::function("recurrentLayout", &recurrent_layout);
  emscripten::function("recurrentWorkspaceBytes", &recurrent_bytes);
  emscripten::function("recurrentBackward", &recurrent_back);
  emscripten::function("recurrentBackwardLayout", &recurrent_layout);
  emscripten::function("recurrentBackwardWorkspaceBytes", &recurrent_backward_bytes);
  emscripten::function("recurrentTraceBytes", &trace_bytes);
}
