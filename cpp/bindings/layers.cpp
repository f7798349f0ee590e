#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "qkv/activation.hpp"
#include "qkv/norm.hpp"
#include "qkv/softmax.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// What becomes of each row, or of each element; in the order of ROW_OPERATIONS in
// web/src/layers.ts.
enum class row_operation { softmax, layer_norm, rms_norm, gelu, gelu_tanh, silu };

// One call for all, since all take rows and give rows. gamma, beta, epsilon: the norms only.
// clang-format off
#define QKV_ROWS_CALL(integer, number)                                                         \
  integer(operation) integer(x) integer(out) integer(rows) integer(columns)                    \
  integer(gamma) integer(beta) number(epsilon)
// clang-format on

struct rows_call {
  QKV_ROWS_CALL(QKV_CALL_INT, QKV_CALL_FLOAT)

  status by_rows(row_operation wanted) const {
    const auto from = heap_view<const float, 2>(x, {rows, columns});
    const auto to = heap_view<float, 2>(out, {rows, columns});
    const auto* scale = heap_pointer<const float>(gamma);
    if (wanted == row_operation::softmax) return softmax_forward(from, to, nullptr, pool());
    if (wanted == row_operation::rms_norm) {
      return rms_norm_forward(from, scale, epsilon, to, pool());
    }
    return layer_norm_forward(from, scale, heap_pointer<const float>(beta), epsilon, to, pool());
  }

  status by_elements(row_operation wanted) const {
    const auto from = heap_view<const float, 1>(x, {rows * columns});
    const auto to = heap_view<float, 1>(out, {rows * columns});
    if (wanted == row_operation::silu) return silu_forward(from, to, pool());
    return gelu_forward(
        from, wanted == row_operation::gelu ? gelu_approximation::none : gelu_approximation::tanh,
        to, pool());
  }
};

int rows(std::uintptr_t at) {
  const auto& call = call_at<rows_call>(at);
  const auto wanted = static_cast<row_operation>(call.operation);
  return static_cast<int>(wanted < row_operation::gelu ? call.by_rows(wanted)
                                                       : call.by_elements(wanted));
}

// clang-format off
#define QKV_ROWS_BACKWARD_CALL(integer, number)                                                \
  integer(operation) integer(d_out) integer(x) integer(d_x) integer(rows) integer(columns)     \
  integer(gamma) integer(d_gamma) integer(d_beta) number(epsilon)                              \
  integer(workspace) integer(workspace_bytes)
// clang-format on

struct rows_backward_call {
  QKV_ROWS_BACKWARD_CALL(QKV_CALL_INT, QKV_CALL_FLOAT)

  status by_rows(row_operation wanted) const {
    const std::array<extent, 2> shape{rows, columns};
    const auto from = heap_view<const float, 2>(d_out, shape),
               at = heap_view<const float, 2>(x, shape);
    const auto to = heap_view<float, 2>(d_x, shape);
    if (wanted == row_operation::softmax) return softmax_backward(from, at, to, pool());
    const auto backward =
        wanted == row_operation::layer_norm ? layer_norm_backward : rms_norm_backward;
    return backward(from, at, heap_pointer<const float>(gamma), epsilon,
                    {to, heap_pointer<float>(d_gamma), heap_pointer<float>(d_beta)},
                    heap_workspace(workspace, workspace_bytes), pool());
  }

  status by_elements(row_operation wanted) const {
    const std::array<extent, 1> shape{rows * columns};
    const auto from = heap_view<const float, 1>(d_out, shape),
               at = heap_view<const float, 1>(x, shape);
    const auto to = heap_view<float, 1>(d_x, shape);
    if (wanted == row_operation::silu) return silu_backward(from, at, to, pool());
    return gelu_backward(
        from, at,
        wanted == row_operation::gelu ? gelu_approximation::none : gelu_approximation::tanh, to,
        pool());
  }
};

int rows_backward(std::uintptr_t at) {
  const auto& call = call_at<rows_backward_call>(at);
  const auto wanted = static_cast<row_operation>(call.operation);
  return static_cast<int>(wanted < row_operation::gelu ? call.by_rows(wanted)
                                                       : call.by_elements(wanted));
}

double norm_backward_bytes(extent rows, extent columns) {
  return static_cast<double>(norm_backward_workspace_bytes(rows, columns));
}

std::uintptr_t rows_backward_layout() {
  return text_address(QKV_ROWS_BACKWARD_CALL(QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT));
}

std::uintptr_t rows_layout() {
  return text_address(QKV_ROWS_CALL(QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(layers) {
  using namespace qkv::bindings;
  emscripten::function("rows", &rows);
  emscripten::function("rowsLayout", &rows_layout);
  emscripten::function("rowsBackward", &rows_backward);
  emscripten::function("rowsBackwardLayout", &rows_backward_layout);
  emscripten::function("normBackwardWorkspaceBytes", &norm_backward_bytes);
}
