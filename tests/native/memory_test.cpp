#include <cstdint>

#include "qkv/qkv.hpp"
#include "qkv/workspace.hpp"
#include "support/doctest.hpp"

using namespace qkv;

TEST_CASE("a workspace gives what it has and no more") {
  alignas(64) char memory[1024];
  workspace bytes(memory + 4, 1020);
  float* first = bytes.floats(3);
  float* second = bytes.floats(3);
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(first) % workspace::alignment, 0);
  CHECK_GE(second - first, 3);
  CHECK_EQ(bytes.floats(1024), nullptr);
  CHECK_NE(bytes.floats(100), nullptr);
  CHECK_EQ(workspace().floats(1), nullptr);
  // More than 32 bits can count, and more than 32-bit addresses reach.
  CHECK_EQ(bytes.floats(1 << 20, 1 << 12), nullptr);
  CHECK_EQ(workspace::bytes_for(1 << 20, 1 << 12), (1ull << 34) + workspace::alignment);
}

TEST_CASE("attention takes no more scratch than a few tiles, whatever the lengths") {
  // The lengths are not even an argument; two workers at dim 64 take less than half a megabyte.
  CHECK_LT(attention_workspace_bytes(64, 64, 2), 512 * 1024);
}

TEST_CASE("recurrent cells take no more scratch for longer sequences") {
  const recurrent_options lstm{.cell = recurrent_cell::lstm};
  CHECK_EQ(recurrent_workspace_bytes({1, 100, 64, 64}, lstm, 2),
           recurrent_workspace_bytes({40, 100'000, 64, 64}, lstm, 2));
}

TEST_CASE(
    "the gradients of attention take scratch that grows as the lengths and not as the scores") {
  const auto bytes = [](extent length, int workers) {
    const view<const float, 4> rows{nullptr, {1, 1, length, 64}, {}};
    return attention_backward_workspace_bytes({rows, rows, rows}, workers);
  };
  // At 64 Ki queries and keys the scores would take 16 GB.
  CHECK_LT(bytes(1 << 16, 1), 160ull << 20);
  CHECK_LT(bytes(1 << 16, 1) / bytes(1 << 15, 1), 2.01);
  CHECK_LT(bytes(1 << 10, 2), 4ull << 20);
}
