// Positions as numbers.
#pragma once

#include "qkv/status.hpp"
#include "qkv/view.hpp"

namespace qkv {

inline constexpr double largest_angle = 0x1p30;

// Sinusoidal positions ("Attention Is All You Need", section 3.5), out: (length, dim):
//   out[t][2i] = sin(t / base^(2i / dim)),  out[t][2i + 1] = cos(t / base^(2i / dim))
// computed in double and rounded once; the same bits on every host. dim may be odd: the last column
// is then a sine. base > 0, 10000 in the paper. Errors: invalid_argument (base, or so many
// positions that an angle passes 2^30).
status sinusoidal(view<float, 2> out, double base = 10000.0);

}  // namespace qkv
