// Memory for intermediate results: the caller's, of a size that each operation states beforehand.
#pragma once

#include <cstdint>
#include <limits>

#include "qkv/view.hpp"

namespace qkv {

// 64 bits on every host: what an operation would need may be more than 32-bit addresses reach, and
// then it must be refused and not wrap around.
using byte_count = std::uint64_t;

// A bump arena over the caller's bytes. `x_workspace_bytes()` of an operation says how many it
// takes.
class workspace {
 public:
  // Blocks start on a cache line, so that no two workers write to the same one.
  static constexpr byte_count alignment = 64;

  workspace() = default;
  workspace(void* memory, byte_count bytes)
      : next_(reinterpret_cast<std::uintptr_t>(memory)), end_(next_ + bytes) {}

  // rows * columns floats, or null when the bytes do not reach.
  float* floats(extent rows, extent columns = 1) {
    const byte_count start = (next_ + alignment - 1) / alignment * alignment;
    const byte_count bytes = bytes_of(rows, columns);
    if (start > end_ || bytes > end_ - start) return nullptr;
    next_ = start + bytes;
    return reinterpret_cast<float*>(static_cast<std::uintptr_t>(start));
  }

  // count doubles, which take what floats(count, 2) takes.
  double* doubles(extent count) { return reinterpret_cast<double*>(floats(count, 2)); }

  // count whole numbers, which take what floats(count) takes.
  std::int32_t* integers(extent count) { return reinterpret_cast<std::int32_t*>(floats(count)); }

  // What is left.
  byte_count bytes() const { return end_ - next_; }

  // Memory that is not there, to learn what a plan will take.
  static workspace measuring() {
    workspace result;
    result.end_ = std::numeric_limits<byte_count>::max() / 2;
    return result;
  }
  // Of measuring() memory: what the same plan takes at any place.
  byte_count measured() const { return next_ + alignment; }

  // What floats(rows, columns) may take, the gap before it included.
  static byte_count bytes_for(extent rows, extent columns = 1) {
    return bytes_of(rows, columns) + alignment;
  }

 private:
  static byte_count bytes_of(extent rows, extent columns) {
    return static_cast<byte_count>(rows) * static_cast<byte_count>(columns) * sizeof(float);
  }

  byte_count next_ = 0;
  byte_count end_ = 0;
};

}  // namespace qkv
