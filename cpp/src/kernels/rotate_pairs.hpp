// Rotation of pairs of one contiguous row. `out` may be `row`. `turn` multiplies the sines: 1 turns
// forward, -1 back.
#pragma once

#include "kernels/row.hpp"

namespace qkv::kernels {

// Pairs (i, pairs + i).
inline void rotate_halves(const float* row, const float* cosines, const float* sines, float turn,
                          extent pairs, float* out) {
  for (extent i = 0; i < pairs; i += simd::lanes) {
    const extent count = pairs - i;
    const simd::batch low = load_row(row + i, count);
    const simd::batch high = load_row(row + pairs + i, count);
    const simd::batch cosine = load_row(cosines + i, count);
    const simd::batch sine = load_row(sines + i, count) * simd::broadcast(turn);
    store_row(out + i, count, low * cosine - high * sine);
    store_row(out + pairs + i, count, low * sine + high * cosine);
  }
}

// Pairs (2 i, 2 i + 1).
inline void rotate_neighbours(const float* row, const float* cosines, const float* sines,
                              float turn, extent pairs, float* out) {
  for (extent i = 0; i < pairs; ++i) {
    const float low = row[2 * i], high = row[2 * i + 1];
    const float cosine = cosines[i], sine = sines[i] * turn;
    out[2 * i] = low * cosine - high * sine;
    out[2 * i + 1] = low * sine + high * cosine;
  }
}

}  // namespace qkv::kernels
