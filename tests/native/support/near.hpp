// The one rule of accuracy: a kernel's largest error against the double reference is at most twice
// the largest error of the plain float loop, plus two units in the last place of the largest value,
// because the plain loop may be right by luck where there is next to nothing to add up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <vector>

#include "support/doctest.hpp"

namespace qkv::test {

inline bool same_kind(double x, double y) {
  return std::isfinite(y) ? std::isfinite(x) : (std::isnan(y) ? std::isnan(x) : x == y);
}

// Infinite where one is finite and the other is not.
template <typename T>
double largest_error(const std::vector<T>& result, const std::vector<double>& exact) {
  if (result.size() != exact.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!same_kind(result[i], exact[i])) return std::numeric_limits<double>::infinity();
    if (std::isfinite(exact[i])) largest = std::max(largest, std::abs(result[i] - exact[i]));
  }
  return largest;
}

inline double allowed_error(const std::vector<float>& plain, const std::vector<double>& exact) {
  double magnitude = 0;
  for (double x : exact) {
    if (std::isfinite(x)) magnitude = std::max(magnitude, std::abs(x));
  }
  return 2 * largest_error(plain, exact) + 2 * std::numeric_limits<float>::epsilon() * magnitude;
}

inline void check_near(const std::vector<float>& result, const std::vector<float>& plain,
                       const std::vector<double>& exact) {
  CHECK_LE(largest_error(result, exact), allowed_error(plain, exact));
}

// For the plain loop to sum in the other order.
inline void reverse_rows(std::vector<float>& rows, std::ptrdiff_t columns) {
  if (columns == 0) return;
  for (auto row = rows.begin(); row != rows.end(); row += columns) std::reverse(row, row + columns);
}

// The plain loop in several orders of summation: the worst of them counts.
inline void check_near(const std::vector<float>& result,
                       std::initializer_list<std::vector<float>> plain,
                       const std::vector<double>& exact) {
  double allowed = 0;
  for (const auto& one : plain) allowed = std::max(allowed, allowed_error(one, exact));
  CHECK_LE(largest_error(result, exact), allowed);
}

}  // namespace qkv::test
