#include <emscripten/bind.h>

#include "heap.hpp"
#include "qkv/rnn.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

struct rnn_call {
  address x, wx, wh, bx, bh, h0, outputs, h, workspace;
  std::size_t workspace_bytes;
  extent batch, length, input_dim, hidden;
};

int rnn(const rnn_call& call) {
  const rnn_parameters parameters{heap_view<const float, 2>(call.wx, {call.input_dim, call.hidden}),
                                  heap_view<const float, 2>(call.wh, {call.hidden, call.hidden}),
                                  reinterpret_cast<const float*>(call.bx),
                                  reinterpret_cast<const float*>(call.bh)};
  return static_cast<int>(
      rnn_forward(heap_view<const float, 3>(call.x, {call.batch, call.length, call.input_dim}),
                  parameters, heap_view<const float, 2>(call.h0, {call.batch, call.hidden}),
                  heap_view<float, 3>(call.outputs, {call.batch, call.length, call.hidden}),
                  heap_view<float, 2>(call.h, {call.batch, call.hidden}),
                  heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::size_t rnn_bytes(extent input_dim, extent hidden) {
  return rnn_workspace_bytes(input_dim, hidden, pool().size());
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(recurrent) {
  using namespace qkv::bindings;
  emscripten::value_object<rnn_call>("RnnCall")
      .field("x", &rnn_call::x)
      .field("wx", &rnn_call::wx)
      .field("wh", &rnn_call::wh)
      .field("bx", &rnn_call::bx)
      .field("bh", &rnn_call::bh)
      .field("h0", &rnn_call::h0)
      .field("outputs", &rnn_call::outputs)
      .field("h", &rnn_call::h)
      .field("workspace", &rnn_call::workspace)
      .field("workspaceBytes", &rnn_call::workspace_bytes)
      .field("batch", &rnn_call::batch)
      .field("length", &rnn_call::length)
      .field("inputDim", &rnn_call::input_dim)
      .field("hidden", &rnn_call::hidden);
  emscripten::function("rnn", &rnn);
  emscripten::function("rnnWorkspaceBytes", &rnn_bytes);
}
