// Memory that is full of NaN to begin with: nothing that was not computed passes for a result.
#pragma once

#include <limits>
#include <vector>

#include "qkv/workspace.hpp"

namespace qkv::test {

inline constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

class scratch {
 public:
  explicit scratch(std::size_t bytes)
      : memory_(bytes / sizeof(float) + 1, quiet_nan), bytes_(bytes) {}
  operator workspace() { return {memory_.data(), bytes_}; }

 private:
  std::vector<float> memory_;
  std::size_t bytes_;
};

}  // namespace qkv::test
