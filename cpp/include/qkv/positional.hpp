// Positions as numbers.
#pragma once

#include "qkv/status.hpp"
#include "qkv/view.hpp"

namespace qkv {

// Sinusoidal positions ("Attention Is All You Need", section 3.5), out: (length, dim):
//   out[t][2i] = sin(t / base^(2i / dim)),  out[t][2i + 1] = cos(t / base^(2i / dim))
// dim may be odd: the last column is then a sine. base > 0, 10000 in the paper.
// Errors: invalid_argument.
status sinusoidal(view<float, 2> out, double base = 10000.0);

}  // namespace qkv
