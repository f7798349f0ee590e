#include "qkv/rotary.hpp"

#include <emscripten/bind.h>

#include "call.hpp"
#include "heap.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// base: the address of a double, positions: that of `rows` doubles.
// clang-format off
#define QKV_ROTARY_TABLES_CALL(integer)                                                        \
  integer(base) integer(positions) integer(cosines) integer(sines) integer(rows) integer(pairs)

// table_rows: the row of each position in tables of `rows` rows, or 0 where position t has row t.
// backward: x and out are the gradients d_out and d_x.
#define QKV_ROTARY_CALL(tensor, integer)                                                       \
  tensor(x) tensor(out)                                                                        \
  integer(batch) integer(heads) integer(length) integer(dim)                                   \
  integer(cosines) integer(sines) integer(rows) integer(pairs) integer(table_rows)             \
  integer(neighbours) integer(backward)
// clang-format on

struct rotary_tables_call {
  QKV_ROTARY_TABLES_CALL(QKV_CALL_INT)
};

struct rotary_call {
  QKV_ROTARY_CALL(QKV_CALL_TENSOR, QKV_CALL_INT)
};

int tables(std::uintptr_t at) {
  const auto& call = call_at<rotary_tables_call>(at);
  return static_cast<int>(rotary_tables(
      heap_pointer<const double>(call.positions), *heap_pointer<const double>(call.base),
      heap_view<float, 2>(call.cosines, {call.rows, call.pairs}),
      heap_view<float, 2>(call.sines, {call.rows, call.pairs}), pool()));
}

int rotary(std::uintptr_t at) {
  const auto& call = call_at<rotary_call>(at);
  const std::array<extent, 4> shape{call.batch, call.heads, call.length, call.dim};
  const rotary_angles angles{heap_view<const float, 2>(call.cosines, {call.rows, call.pairs}),
                             heap_view<const float, 2>(call.sines, {call.rows, call.pairs}),
                             heap_pointer<const std::int32_t>(call.table_rows)};
  const auto turn = call.backward ? rotary_backward : rotary_forward;
  return static_cast<int>(
      turn(heap_view<const float>(call.x, shape), angles,
           call.neighbours ? rotary_pairing::neighbours : rotary_pairing::halves,
           heap_view<float>(call.out, shape), pool()));
}

std::uintptr_t tables_layout() { return text_address(QKV_ROTARY_TABLES_CALL(QKV_LAYOUT_INT)); }

std::uintptr_t rotary_layout() {
  return text_address(QKV_ROTARY_CALL(QKV_LAYOUT_TENSOR, QKV_LAYOUT_INT));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(rotary) {
  using namespace qkv::bindings;
  emscripten::function("rotaryTables", &tables);
  emscripten::function("rotaryTablesLayout", &tables_layout);
  emscripten::function("rotary", &rotary);
  emscripten::function("rotaryLayout", &rotary_layout);
}
