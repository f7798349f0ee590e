// Seeded numbers, the same bits on every host.
#pragma once

#include <cstdint>
#include <numbers>

#include "kernels/portable_math.hpp"

namespace qkv {

// splitmix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", 2014).
class sequence_random {
 public:
  explicit sequence_random(std::uint64_t seed) : state_(seed) {}

  // In [0, 1).
  double uniform() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

  // In [-bound, bound).
  double within(double bound) { return bound * (2 * uniform() - 1); }

  // Of mean 0 and variance 1 (Box & Muller, 1958).
  double normal() {
    const double radius = std::sqrt(-2 * kernels::logarithm(1 - uniform()));
    return radius * kernels::sine_and_cosine_of(2 * std::numbers::pi * uniform()).cosine;
  }

 private:
  std::uint64_t state_;
};

}  // namespace qkv
