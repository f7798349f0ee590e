#include "qkv/rotary.hpp"

#include <algorithm>
#include <cmath>

#include "contiguous.hpp"
#include "kernels/portable_math.hpp"
#include "kernels/rotate_pairs.hpp"

namespace qkv {

namespace {

// Positions of one task.
constexpr extent position_block = 32;

// Frequencies that are made at once, and used for all positions of a task.
constexpr extent frequency_block = 32;

extent blocks(extent length) { return (length + position_block - 1) / position_block; }

void fill_tables(const double* positions, double base, const view<float, 2>& cosines,
                 const view<float, 2>& sines, extent begin, extent end) {
  const extent pairs = cosines.shape[1];
  const double log_base = kernels::logarithm(base);
  for (extent first = 0; first < pairs; first += frequency_block) {
    const extent count = std::min(frequency_block, pairs - first);
    double frequency[frequency_block];
    for (extent i = 0; i < count; ++i) {
      const double part = static_cast<double>(first + i) / static_cast<double>(pairs);
      frequency[i] = kernels::exponential(-part * log_base);
    }
    for (extent t = begin; t < end; ++t) {
      for (extent i = 0; i < count; ++i) {
        const auto [sine, cosine] = kernels::sine_and_cosine_of(positions[t] * frequency[i]);
        cosines(t, first + i) = static_cast<float>(cosine);
        sines(t, first + i) = static_cast<float>(sine);
      }
    }
  }
}

status validate(const view<const float, 4>& x, const rotary_angles& angles,
                const view<float, 4>& out) {
  const auto& [cosines, sines, rows] = angles;
  const extent length = x.shape[2], table_rows = cosines.shape[0];
  if (out.shape != x.shape || sines.shape != cosines.shape || 2 * cosines.shape[1] > x.shape[3] ||
      (rows == nullptr && length > table_rows)) {
    return status::shape_mismatch;
  }
  const bool contiguous = rows_are_contiguous(x) && rows_are_contiguous(out) &&
                          rows_are_contiguous(cosines) && rows_are_contiguous(sines);
  const bool inside = rows == nullptr || std::all_of(rows, rows + length, [=](std::int32_t row) {
                        return row >= 0 && row < table_rows;
                      });
  return contiguous && inside ? status::ok : status::invalid_argument;
}

}  // namespace

status rotary_tables(const double* positions, double base, view<float, 2> cosines,
                     view<float, 2> sines, thread_pool& pool) {
  if (sines.shape != cosines.shape) return status::shape_mismatch;
  const extent length = cosines.shape[0];
  const bool near = std::all_of(positions, positions + length, [](double position) {
    return std::abs(position) <= largest_rotary_position;
  });
  if (!near || !(base >= 1.0) || !std::isfinite(base)) return status::invalid_argument;
  pool.run(blocks(length), [&](extent task, int) {
    const extent begin = task * position_block;
    fill_tables(positions, base, cosines, sines, begin, std::min(length, begin + position_block));
  });
  return status::ok;
}

namespace {

status turn_pairs(const view<const float, 4>& x, const rotary_angles& angles,
                  rotary_pairing pairing, float turn, const view<float, 4>& out,
                  thread_pool& pool) {
  if (const status checked = validate(x, angles, out); checked != status::ok) return checked;
  const auto [batch, heads, length, dim] = x.shape;
  const extent pairs = angles.cosines.shape[1], rest = dim - 2 * pairs;
  const auto rotate =
      pairing == rotary_pairing::halves ? kernels::rotate_halves : kernels::rotate_neighbours;
  pool.run(batch * blocks(length), [&, heads = heads, length = length](extent task, int) {
    const extent b = task / blocks(length), begin = task % blocks(length) * position_block;
    for (extent t = begin; t < std::min(length, begin + position_block); ++t) {
      const extent row = angles.rows != nullptr ? angles.rows[t] : t;
      for (extent h = 0; h < heads; ++h) {
        const float* from = x.at(b, h, t);
        float* to = out.at(b, h, t);
        rotate(from, angles.cosines.at(row), angles.sines.at(row), turn, pairs, to);
        if (to != from) std::copy_n(from + 2 * pairs, rest, to + 2 * pairs);
      }
    }
  });
  return status::ok;
}

}  // namespace

status rotary_forward(view<const float, 4> x, const rotary_angles& angles, rotary_pairing pairing,
                      view<float, 4> out, thread_pool& pool) {
  return turn_pairs(x, angles, pairing, 1.0f, out, pool);
}

status rotary_backward(view<const float, 4> d_out, const rotary_angles& angles,
                       rotary_pairing pairing, view<float, 4> d_x, thread_pool& pool) {
  return turn_pairs(d_out, angles, pairing, -1.0f, d_x, pool);
}

}  // namespace qkv
