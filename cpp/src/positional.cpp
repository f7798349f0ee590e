#include "qkv/positional.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/portable_math.hpp"

namespace qkv {

namespace {

double frequency_of(double log_base, extent column, extent dim) {
  const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(dim);
  return kernels::exponential(-exponent * log_base);
}

}  // namespace

status sinusoidal(view<float, 2> out, double base) {
  if (!(base > 0.0) || !std::isfinite(base)) return status::invalid_argument;
  const auto [length, dim] = out.shape;
  if (dim == 0) return status::ok;
  const double log_base = kernels::logarithm(base);
  // With a base below 1 frequencies rise.
  const double highest = std::max(1.0, frequency_of(log_base, dim - 1, dim));
  if (static_cast<double>(length) * highest > largest_angle) return status::invalid_argument;
  for (extent column = 0; column < dim; column += 2) {
    const double frequency = frequency_of(log_base, column, dim);
    for (extent t = 0; t < length; ++t) {
      const auto [sine, cosine] = kernels::sine_and_cosine_of(static_cast<double>(t) * frequency);
      out(t, column) = static_cast<float>(sine);
      if (column + 1 < dim) out(t, column + 1) = static_cast<float>(cosine);
    }
  }
  return status::ok;
}

}  // namespace qkv
