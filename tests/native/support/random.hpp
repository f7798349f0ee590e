// Seeded numbers, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "qkv/view.hpp"

namespace qkv::test {

// splitmix64 (Steele, Lea & Flood, 2014).
class number_source {
 public:
  explicit number_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  extent below(extent limit) {
    return static_cast<extent>(next() % static_cast<std::uint64_t>(limit));
  }

  // In [-scale, scale).
  std::vector<float> floats(extent count, double scale = 1.0) {
    std::vector<float> values(count);
    for (float& x : values) x = static_cast<float>(scale * (2 * uniform() - 1));
    return values;
  }

 private:
  std::uint64_t state_;
};

inline std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace qkv::test
