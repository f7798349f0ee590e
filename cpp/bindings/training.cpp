#include <emscripten/bind.h>

#include "adam_settings.hpp"
#include "call.hpp"
#include "heap.hpp"
#include "qkv/embedding.hpp"
#include "qkv/loss.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// clang-format off
#define QKV_EMBEDDING_BACKWARD_CALL(integer)                                                   \
  integer(d_out) integer(indices) integer(d_table) integer(count) integer(rows) integer(dim)   \
  integer(workspace) integer(workspace_bytes)

// loss: the address of one float.
#define QKV_CROSS_ENTROPY_CALL(integer)                                                        \
  integer(logits) integer(targets) integer(loss) integer(d_logits)                             \
  integer(rows) integer(classes) integer(workspace) integer(workspace_bytes)

// settings: the address of adam_settings; fault: that of two integers, what adam_fault holds.
#define QKV_ADAM_CALL(integer)                                                                 \
  integer(parameters) integer(gradients) integer(mean) integer(square) integer(count)          \
  integer(settings) integer(fault) integer(workspace) integer(workspace_bytes)
// clang-format on

struct embedding_backward_call {
  QKV_EMBEDDING_BACKWARD_CALL(QKV_CALL_INT)
};

struct cross_entropy_call {
  QKV_CROSS_ENTROPY_CALL(QKV_CALL_INT)
};

struct adam_call {
  QKV_ADAM_CALL(QKV_CALL_INT)
};

int embedding_backward(std::uintptr_t at) {
  const auto& call = call_at<embedding_backward_call>(at);
  return static_cast<int>(
      qkv::embedding_backward(heap_view<const float, 2>(call.d_out, {call.count, call.dim}),
                              heap_pointer<const std::int32_t>(call.indices),
                              heap_view<float, 2>(call.d_table, {call.rows, call.dim}),
                              heap_workspace(call.workspace, call.workspace_bytes), pool()));
}

int cross_entropy(std::uintptr_t at) {
  const auto& call = call_at<cross_entropy_call>(at);
  double loss = 0;
  const status made =
      qkv::cross_entropy(heap_view<const float, 2>(call.logits, {call.rows, call.classes}),
                         heap_pointer<const std::int32_t>(call.targets), loss,
                         heap_view<float, 2>(call.d_logits, {call.rows, call.classes}),
                         heap_workspace(call.workspace, call.workspace_bytes), pool());
  *heap_pointer<float>(call.loss) = static_cast<float>(loss);
  return static_cast<int>(made);
}

int adam(std::uintptr_t at) {
  const auto& call = call_at<adam_call>(at);
  auto& settings = *heap_pointer<adam_settings>(call.settings);
  adam_state state{heap_pointer<float>(call.mean), heap_pointer<float>(call.square),
                   settings.beta1_power, settings.beta2_power};
  adam_fault fault;
  const status made = adam_step(
      heap_pointer<float>(call.parameters), heap_pointer<const float>(call.gradients), call.count,
      settings.options, state, fault, heap_workspace(call.workspace, call.workspace_bytes), pool());
  settings.beta1_power = state.beta1_power;
  settings.beta2_power = state.beta2_power;
  auto* told = heap_pointer<std::int32_t>(call.fault);
  told[0] = fault.in_parameters;
  told[1] = static_cast<std::int32_t>(fault.element);
  return static_cast<int>(made);
}

std::uintptr_t embedding_backward_layout() {
  return text_address(QKV_EMBEDDING_BACKWARD_CALL(QKV_LAYOUT_INT));
}

std::uintptr_t cross_entropy_layout() {
  return text_address(QKV_CROSS_ENTROPY_CALL(QKV_LAYOUT_INT));
}

std::uintptr_t adam_layout() { return text_address(QKV_ADAM_CALL(QKV_LAYOUT_INT)); }

double embedding_backward_bytes(extent count, extent rows) {
  return static_cast<double>(embedding_backward_workspace_bytes(count, rows));
}

double cross_entropy_bytes(extent rows) {
  return static_cast<double>(cross_entropy_workspace_bytes(rows));
}

double adam_bytes(extent count) { return static_cast<double>(adam_workspace_bytes(count)); }

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(training) {
  using namespace qkv::bindings;
  emscripten::function("embeddingBackward", &embedding_backward);
  emscripten::function("embeddingBackwardLayout", &embedding_backward_layout);
  emscripten::function("crossEntropy", &cross_entropy);
  emscripten::function("crossEntropyLayout", &cross_entropy_layout);
  emscripten::function("embeddingBackwardWorkspaceBytes", &embedding_backward_bytes);
  emscripten::function("crossEntropyWorkspaceBytes", &cross_entropy_bytes);
  emscripten::function("adam", &adam);
  emscripten::function("adamLayout", &adam_layout);
  emscripten::function("adamWorkspaceBytes", &adam_bytes);
}
