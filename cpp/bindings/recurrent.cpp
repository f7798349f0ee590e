#include "qkv/recurrent.hpp"

#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// clang-format off
#define QKV_RECURRENT_CALL(integer)                                                            \
  integer(cell) integer(direction) integer(onnx_order) integer(reset_before) integer(relu)     \
  integer(batch) integer(length) integer(input_dim) integer(hidden) integer(lengths)           \
  integer(x) integer(h0) integer(c0) integer(outputs) integer(h) integer(c)                    \
  integer(wx) integer(wh) integer(bx) integer(bh) integer(peephole)                            \
  integer(wx_2) integer(wh_2) integer(bx_2) integer(bh_2) integer(peephole_2)                  \
  integer(workspace) integer(workspace_bytes)
// clang-format on

struct recurrent_call {
  QKV_RECURRENT_CALL(QKV_CALL_INT)
};

template <typename T>
view<T, 3> optional_view(address data, std::array<extent, 3> shape) {
  return data == 0 ? view<T, 3>{} : heap_view<T, 3>(data, shape);
}

int recurrent(std::uintptr_t at) {
  const auto& call = call_at<recurrent_call>(at);
  const recurrent_options options{
      static_cast<recurrent_cell>(call.cell), static_cast<recurrent_direction>(call.direction),
      call.onnx_order ? recurrent_gate_order::onnx : recurrent_gate_order::own, !call.reset_before,
      call.relu != 0};
  const extent directions = directions_of(options.direction);
  const extent columns = gates_of(options.cell) * call.hidden;
  const auto parameters = [&](address wx, address wh, address bx, address bh, address peephole) {
    return recurrent_parameters{heap_view<const float, 2>(wx, {call.input_dim, columns}),
                                heap_view<const float, 2>(wh, {call.hidden, columns}),
                                heap_pointer<const float>(bx), heap_pointer<const float>(bh),
                                heap_pointer<const float>(peephole)};
  };
  const std::array<extent, 3> state{directions, call.batch, call.hidden};
  return static_cast<int>(recurrent_forward(
      {heap_view<const float, 3>(call.x, {call.batch, call.length, call.input_dim}),
       optional_view<const float>(call.h0, state), optional_view<const float>(call.c0, state),
       heap_pointer<const std::int32_t>(call.lengths)},
      {parameters(call.wx, call.wh, call.bx, call.bh, call.peephole),
       parameters(call.wx_2, call.wh_2, call.bx_2, call.bh_2, call.peephole_2)},
      options,
      {heap_view<float, 3>(call.outputs, {call.batch, call.length, directions * call.hidden}),
       heap_view<float, 3>(call.h, state), optional_view<float>(call.c, state)},
      heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t recurrent_layout() { return text_address(QKV_RECURRENT_CALL(QKV_LAYOUT_INT)); }

// As a double, which holds more than 32 bits and is a number in JavaScript.
double recurrent_bytes(int cell, int direction, extent rows, extent input_dim, extent hidden) {
  const recurrent_options options{.cell = static_cast<recurrent_cell>(cell),
                                  .direction = static_cast<recurrent_direction>(direction)};
  return static_cast<double>(
      recurrent_workspace_bytes({1, rows, input_dim, hidden}, options, pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(recurrent) {
  using namespace qkv::bindings;
  emscripten::function("recurrent", &recurrent);
  emscripten::function("recurrentLayout", &recurrent_layout);
  emscripten::function("recurrentWorkspaceBytes", &recurrent_bytes);
}
