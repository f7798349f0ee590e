#include "qkv/positional.hpp"

#include <cmath>

namespace qkv {

status sinusoidal(view<float, 2> out, double base) {
  if (!(base > 0.0) || !std::isfinite(base)) return status::invalid_argument;
  const auto [length, dim] = out.shape;
  for (extent column = 0; column < dim; ++column) {
    const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(dim);
    const double frequency = std::pow(base, -exponent);
    for (extent t = 0; t < length; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      out(t, column) = static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return status::ok;
}

}  // namespace qkv
