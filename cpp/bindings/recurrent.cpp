#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "qkv/rnn.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// clang-format off
#define QKV_RNN_CALL(integer)                                                                  \
  integer(x) integer(wx) integer(wh) integer(bx) integer(bh) integer(h0)                       \
  integer(outputs) integer(h)                                                                  \
  integer(workspace) integer(workspace_bytes)                                                  \
  integer(batch) integer(length) integer(input_dim) integer(hidden)
// clang-format on

struct rnn_call {
  QKV_RNN_CALL(QKV_CALL_INT)
};

int rnn(std::uintptr_t at) {
  const auto& call = call_at<rnn_call>(at);
  const rnn_parameters parameters{heap_view<const float, 2>(call.wx, {call.input_dim, call.hidden}),
                                  heap_view<const float, 2>(call.wh, {call.hidden, call.hidden}),
                                  heap_pointer<const float>(call.bx),
                                  heap_pointer<const float>(call.bh)};
  return static_cast<int>(
      rnn_forward(heap_view<const float, 3>(call.x, {call.batch, call.length, call.input_dim}),
                  parameters, heap_view<const float, 2>(call.h0, {call.batch, call.hidden}),
                  heap_view<float, 3>(call.outputs, {call.batch, call.length, call.hidden}),
                  heap_view<float, 2>(call.h, {call.batch, call.hidden}),
                  heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t rnn_layout() { return text_address(QKV_RNN_CALL(QKV_LAYOUT_INT)); }

// As a double, which holds more than 32 bits and is a number in JavaScript.
double rnn_bytes(extent input_dim, extent hidden) {
  return static_cast<double>(rnn_workspace_bytes(input_dim, hidden, pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(recurrent) {
  using namespace qkv::bindings;
  emscripten::function("rnn", &rnn);
  emscripten::function("rnnLayout", &rnn_layout);
  emscripten::function("rnnWorkspaceBytes", &rnn_bytes);
}
