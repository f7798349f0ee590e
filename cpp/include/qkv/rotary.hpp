// Rotary positions (Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding",
// 2021): pairs of dimensions turn by angles that grow with the position, so that query . key
// depends on how far the two lie apart.
#pragma once

#include <cstdint>

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"

namespace qkv {

// Which two of `dims` dimensions are pair i: (i, dims / 2 + i) or (2 i, 2 i + 1). Models differ,
// and the wrong one gives numbers that look right.
enum class rotary_pairing { halves, neighbours };

inline constexpr double largest_rotary_position = 0x1p30;

// The cosine and sine of position * base^(-2 i / dims) for pair i, computed in double and rounded
// once; the same bits on every host. cosines, sines: (positions, dims / 2). base >= 1 (10000 in the
// paper), |position| <= 2^30. Errors: shape_mismatch, invalid_argument (base, positions).
status rotary_tables(const double* positions, double base, view<float, 2> cosines,
                     view<float, 2> sines, thread_pool& pool);

// What a row at each position is turned by: (table rows, dims / 2), last axes contiguous.
// rows: the table row of each position, or null where position t has row t.
struct rotary_angles {
  view<const float, 2> cosines;
  view<const float, 2> sines;
  const std::int32_t* rows = nullptr;
};

// For each pair (a, b) of x: (a cos - b sin, a sin + b cos). x, out: (batch, heads, length, dim),
// any strides but a contiguous last axis; out may be x. dims <= dim, the others are copied. Errors:
// shape_mismatch, invalid_argument (strides, a row outside the tables).
status rotary_forward(view<const float, 4> x, const rotary_angles& angles, rotary_pairing pairing,
                      view<float, 4> out, thread_pool& pool);

// The transpose of the above: for each pair (a, b) of d_out, (a cos + b sin, b cos - a sin), which
// does not depend on x. d_out, d_x: shapes, strides and errors as of x and out; d_x may be d_out.
status rotary_backward(view<const float, 4> d_out, const rotary_angles& angles,
                       rotary_pairing pairing, view<float, 4> d_x, thread_pool& pool);

}  // namespace qkv
