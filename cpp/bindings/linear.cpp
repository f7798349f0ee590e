#include "qkv/linear.hpp"

#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// clang-format off
#define QKV_LINEAR_CALL(integer)                                                               \
  integer(x) integer(weight) integer(bias) integer(out)                                        \
  integer(rows) integer(in_dim) integer(out_dim)                                               \
  integer(workspace) integer(workspace_bytes)

// d_x, d_weight, d_bias: 0 where not wanted.
#define QKV_LINEAR_BACKWARD_CALL(integer)                                                      \
  integer(d_out) integer(x) integer(weight) integer(d_x) integer(d_weight) integer(d_bias)     \
  integer(rows) integer(in_dim) integer(out_dim)                                               \
  integer(workspace) integer(workspace_bytes)
// clang-format on

struct linear_call {
  QKV_LINEAR_CALL(QKV_CALL_INT)
};

struct linear_backward_call {
  QKV_LINEAR_BACKWARD_CALL(QKV_CALL_INT)
};

int linear(std::uintptr_t at) {
  const auto& call = call_at<linear_call>(at);
  return static_cast<int>(
      linear_forward(heap_view<const float, 2>(call.x, {call.rows, call.in_dim}),
                     heap_view<const float, 2>(call.weight, {call.in_dim, call.out_dim}),
                     heap_pointer<const float>(call.bias),
                     heap_view<float, 2>(call.out, {call.rows, call.out_dim}),
                     heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

int linear_backward(std::uintptr_t at) {
  const auto& call = call_at<linear_backward_call>(at);
  const linear_gradients to{heap_view<float, 2>(call.d_x, {call.rows, call.in_dim}),
                            heap_view<float, 2>(call.d_weight, {call.in_dim, call.out_dim}),
                            heap_pointer<float>(call.d_bias)};
  return static_cast<int>(
      qkv::linear_backward(heap_view<const float, 2>(call.d_out, {call.rows, call.out_dim}),
                           heap_view<const float, 2>(call.x, {call.rows, call.in_dim}),
                           heap_view<const float, 2>(call.weight, {call.in_dim, call.out_dim}), to,
                           heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

std::uintptr_t linear_backward_layout() {
  return text_address(QKV_LINEAR_BACKWARD_CALL(QKV_LAYOUT_INT));
}

double linear_backward_bytes(extent rows, extent in_dim, extent out_dim) {
  return static_cast<double>(linear_backward_workspace_bytes(rows, in_dim, out_dim, pool().size()));
}

std::uintptr_t linear_layout() { return text_address(QKV_LINEAR_CALL(QKV_LAYOUT_INT)); }

// As a double, which holds more than 32 bits and is a number in JavaScript.
double linear_bytes(extent in_dim, extent out_dim) {
  return static_cast<double>(linear_workspace_bytes(in_dim, out_dim, pool().size()));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(linear) {
  using namespace qkv::bindings;
  emscripten::function("linear", &linear);
  emscripten::function("linearLayout", &linear_layout);
  emscripten::function("linearWorkspaceBytes", &linear_bytes);
  emscripten::function("linearBackward", &linear_backward);
  emscripten::function("linearBackwardLayout", &linear_backward_layout);
  emscripten::function("linearBackwardWorkspaceBytes", &linear_backward_bytes);
}
