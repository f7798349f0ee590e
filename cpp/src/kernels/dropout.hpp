// Which weights are dropped: a hash of seed, row and key, so that nobody's share of the work
// matters.
#pragma once

#include <cstdint>

#include "kernels/gemm_kernel.hpp"

namespace qkv::kernels {

// splitmix64's finaliser (Steele, Lea & Flood, 2014).
inline std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// murmur3's finaliser, for the many.
inline std::uint32_t mix32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// One row's stream: `row` counts (batch, head, query).
struct dropout_row {
  std::uint32_t low, high;

  dropout_row(std::uint64_t seed, std::uint64_t row) {
    const std::uint64_t mixed = mix64(mix64(seed + 0x9e3779b97f4a7c15u) ^ row);
    low = static_cast<std::uint32_t>(mixed);
    high = static_cast<std::uint32_t>(mixed >> 32);
  }

  // Uniform in [0, 2^32).
  std::uint32_t at(extent key) const {
    return mix32(mix32(low ^ static_cast<std::uint32_t>(key)) + high);
  }
};

// p as a bound on dropout_row::at(): below it is dropped. 0 drops nothing.
inline std::uint32_t dropout_bound(float probability) {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 4294967296.0);
}

}  // namespace qkv::kernels
