// Gradients against finite differences, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/doctest.hpp"

namespace qkv::test {

// loss(): a double that depends on x. The largest difference between `gradient` and the central
// differences of the loss, as a share of the largest gradient: single elements may be next to 0.
template <typename Loss>
double gradient_error(std::vector<double>& x, const std::vector<double>& gradient,
                      const Loss& loss) {
  // The rounding of the loss divided by the step, and the square of the step, are both about 1e-10.
  const double step = 1e-5;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    x[i] = value + step;
    const double above = loss();
    x[i] = value - step;
    const double below = loss();
    x[i] = value;
    largest = std::max(largest, std::abs(gradient[i]));
    // Written so that NaN is an error too.
    const double difference = std::abs((above - below) / (2 * step) - gradient[i]);
    if (!(difference <= error)) error = difference;
  }
  return error == 0 ? 0 : error / largest;
}

template <typename Loss>
void check_gradient(std::vector<double>& x, const std::vector<double>& gradient, const Loss& loss) {
  REQUIRE_EQ(x.size(), gradient.size());
  CHECK_LT(gradient_error(x, gradient, loss), 1e-6);
}

// The loss that most checks take: each element of a result times a number of its own.
inline double weighted_sum(const std::vector<double>& out, const std::vector<double>& d_out) {
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
  return sum;
}

}  // namespace qkv::test
