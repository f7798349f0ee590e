// Memory for intermediate results: the caller's, of a size that each operation states beforehand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qkv/view.hpp"

namespace qkv {

// A bump arena over the caller's bytes. `x_workspace_bytes()` of an operation says how many it
// takes.
class workspace {
 public:
  // Blocks start on a cache line, so that no two workers write to the same one.
  static constexpr std::size_t alignment = 64;

  workspace() = default;
  workspace(void* memory, std::size_t bytes)
      : next_(reinterpret_cast<std::uintptr_t>(memory)), end_(next_ + bytes) {}

  // `count` floats, or null when the bytes do not reach.
  float* floats(extent count) {
    const std::uintptr_t start = (next_ + alignment - 1) / alignment * alignment;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    if (start > end_ || bytes > end_ - start) return nullptr;
    next_ = start + bytes;
    return reinterpret_cast<float*>(start);
  }

  // What `floats(count)` may take, the gap before it included.
  static std::size_t bytes_for(extent count) {
    return static_cast<std::size_t>(count) * sizeof(float) + alignment;
  }

 private:
  std::uintptr_t next_ = 0;
  std::uintptr_t end_ = 0;
};

}  // namespace qkv
