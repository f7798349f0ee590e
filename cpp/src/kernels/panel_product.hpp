// c (rows, columns) += a (rows, depth) . b for the few rows of a recurrent step. Such a product has
// to read all of b for little arithmetic, so it goes at the speed of the memory that b lies in:
// each weight is read once, in streams, for one row or two at a time, and a is read where it lies.
#pragma once

#include "kernels/gemm.hpp"

namespace qkv::kernels {

// Columns of one panel, and of the two that belong together: one row by both, or two rows by
// either, keep 8 sums in registers, enough to hide a multiply-add. Two streams come faster from the
// last cache than one.
inline constexpr int half_vectors = 4;
inline constexpr int half_panel = half_vectors * simd::lanes;
inline constexpr int wide_panel = 2 * half_panel;

// Panels of `half_panel` columns, `panel_stride` apart, with rows `row_stride` apart. There has to
// be memory for whole pairs of panels; what lies in the columns beyond does not matter.
struct panel_matrix {
  const float* data;
  extent depth;
  extent columns;
  extent panel_stride;
  extent row_stride;

  // What pack_columns<half_panel>() made.
  static panel_matrix packed(const float* panels, extent depth, extent columns) {
    return {panels, depth, columns, depth * half_panel, half_panel};
  }

  // Rows where they lie, which is all that a single step is worth.
  static panel_matrix in_place(const float* rows, extent depth, extent columns, extent row_stride) {
    return {rows, depth, columns, half_panel, row_stride};
  }
};

// Rows [0, depth) of a panel and, `panel_stride` behind it, of its partner.
struct panel_pair {
  const float* data;
  extent panel_stride;
  extent row_stride;
};

// c += a . b for one row by two panels, or two rows by one. Each sum is gemm_kernel's. Turns
// divides the depth: with one row the loop itself is a good part of the work, so that four turns of
// it are one; with two, V8 would run out of registers, as it would with a second loop for what is
// left.
template <int Rows, int Turns>
[[gnu::noinline]] void panel_kernel(extent depth, left_matrix a, panel_pair b, result_matrix c) {
  constexpr int halves = 2 / Rows;
  tile<Rows, halves * half_vectors> sum;
  for (auto& row : sum) row.fill(simd::zero());
  const float* at = b.data;
  for (extent k = 0; k < depth; k += Turns, at += Turns * b.row_stride) {
    for (extent turn = 0; turn < Turns; ++turn) {
      std::array<simd::batch, halves * half_vectors> column;
      for (int v = 0; v < halves * half_vectors; ++v) {
        column[v] = simd::load(at + turn * b.row_stride + v / half_vectors * b.panel_stride +
                               v % half_vectors * simd::lanes);
      }
      for (int r = 0; r < Rows; ++r) {
        const simd::batch factor = simd::broadcast(a.data[r * a.row_stride + k + turn]);
        for (int v = 0; v < halves * half_vectors; ++v) {
          sum[r][v] = simd::madd(factor, column[v], sum[r][v]);
        }
      }
    }
  }
  for (int r = 0; r < Rows; ++r) write_row(sum[r], c.data + r * c.row_stride, write::add);
}

// Two panels for at most two rows.
inline void add_panels(extent depth, left_matrix a, panel_pair b, result_matrix c) {
  if (a.rows == 1) {
    const auto kernel = depth % 4 == 0 ? panel_kernel<1, 4> : panel_kernel<1, 1>;
    return kernel(depth, a, b, c);
  }
  panel_kernel<2, 1>(depth, a, b, c);
  panel_kernel<2, 1>(depth, a, {b.data + b.panel_stride, 0, b.row_stride},
                     {c.data + half_panel, c.row_stride});
}

// Where the panels are wider than what is left of c, by way of memory of their own.
inline void add_columns(extent depth, left_matrix a, panel_pair b, result_matrix c,
                        extent columns) {
  float edge[2 * wide_panel];
  const bool whole = columns >= wide_panel;
  for (extent r = 0; !whole && r < a.rows; ++r) {
    std::copy_n(c.data + r * c.row_stride, columns, edge + r * wide_panel);
  }
  add_panels(depth, a, b, whole ? c : result_matrix{edge, wide_panel});
  for (extent r = 0; !whole && r < a.rows; ++r) {
    std::copy_n(edge + r * wide_panel, columns, c.data + r * c.row_stride);
  }
}

// Which panels come first. A product that is made again and again changes the direction each time:
// where b is larger than a cache, it then begins with what the last one left there.
enum class panel_order { rising, falling };

// Sums are cut at depth_block and each part is one chain of multiply-adds, whatever the number of
// rows.
inline void multiply_add(left_matrix a, const panel_matrix& b, result_matrix c, panel_order order) {
  const extent count = panels(b.columns, wide_panel);
  for (extent i = 0; i < count; ++i) {
    const extent index = order == panel_order::rising ? i : count - 1 - i;
    const extent column = index * wide_panel;
    const float* first = b.data + 2 * index * b.panel_stride;
    for (extent k = 0; k < b.depth; k += depth_block) {
      for (extent r = 0; r < a.rows; r += 2) {
        add_columns(std::min(depth_block, b.depth - k),
                    {a.data + r * a.row_stride + k, std::min<extent>(2, a.rows - r), a.row_stride},
                    {first + k * b.row_stride, b.panel_stride, b.row_stride},
                    {c.data + r * c.row_stride + column, c.row_stride}, b.columns - column);
      }
    }
  }
}

}  // namespace qkv::kernels
