// One query against keys and values as they lie: packing them into panels costs more than it saves
// where each is used once. Every sum is the same chain of multiply-adds as in the panels' kernels,
// so a query's bits do not depend on how many others came with it.
#pragma once

#include "kernels/gemm.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/row.hpp"

namespace qkv::kernels {

// scores[i] = query . key for Groups * lanes keys, `stride` apart; keys after `last` are
// that one again. A lane is a key: blocks of lanes x lanes are turned over in registers.
template <int Groups>
[[gnu::noinline]] void score_keys(extent head_dim, const float* key, extent stride, extent last,
                                  const float* query, float* scores) {
  std::array<simd::batch, Groups> sum;
  sum.fill(simd::zero());
  std::array<const float*, Groups * simd::lanes> rows;
  for (extent r = 0; r < Groups * simd::lanes; ++r) rows[r] = key + std::min(r, last) * stride;
  extent d = 0;
  for (; d + simd::lanes <= head_dim; d += simd::lanes) {
    for (int g = 0; g < Groups; ++g) {
      simd::batch block[simd::lanes];
      for (int r = 0; r < simd::lanes; ++r) block[r] = simd::load(rows[g * simd::lanes + r] + d);
      simd::transpose(block);
      for (int i = 0; i < simd::lanes; ++i) {
        sum[g] = simd::madd(block[i], simd::broadcast(query[(d + i) * column_panel]), sum[g]);
      }
    }
  }
  for (; d < head_dim; ++d) {
    for (int g = 0; g < Groups; ++g) {
      float lane[simd::lanes];
      for (int r = 0; r < simd::lanes; ++r) lane[r] = rows[g * simd::lanes + r][d];
      sum[g] = simd::madd(simd::load(lane), simd::broadcast(query[d * column_panel]), sum[g]);
    }
  }
  for (int g = 0; g < Groups; ++g) simd::store(scores + g * simd::lanes, sum[g]);
}

// The query is a column of a column panel. Writes `keys` scores, rounded up to whole batches.
inline void score_row(extent head_dim, const float* key, extent stride, extent keys,
                      const float* query, float* scores) {
  // Four chains at once, so that they do not wait for each other.
  constexpr extent four = 4 * simd::lanes;
  extent j = 0;
  for (; j + four <= keys; j += four) {
    score_keys<4>(head_dim, key + j * stride, stride, four, query, scores + j);
  }
  for (; j < keys; j += simd::lanes) {
    score_keys<1>(head_dim, key + j * stride, stride, keys - j - 1, query, scores + j);
  }
}

// block_softmax() of one query, whose scores lie side by side, but for the sum. Returns the
// largest.
inline float block_exponentials(float* scores, extent keys) {
  simd::batch largest = simd::broadcast(minus_infinity);
  extent j = 0;
  for (; j + simd::lanes <= keys; j += simd::lanes) {
    largest = simd::max(largest, simd::load(scores + j));
  }
  float row_max = simd::max_lanes(largest);
  for (; j < keys; ++j) row_max = scores[j] > row_max ? scores[j] : row_max;
  const simd::batch shift = softmax_shift(simd::broadcast(row_max));
  map_row(scores, keys, scores,
          [&](simd::batch score) { return simd::exp_nonpositive(score - shift); });
  return row_max;
}

// finished_weights() of one query.
inline void finished_row_weights(float* scores, extent keys, float row_max, float sum) {
  const simd::batch shift = softmax_shift(simd::broadcast(row_max)), all = simd::broadcast(sum);
  map_row(scores, keys, scores,
          [&](simd::batch score) { return finished_weight(score, shift, all); });
}

// How far apart rows of weights lie: a constant, so that one address serves all of them.
inline constexpr extent weight_stride = 256;

// out[r][0 ... columns) = sum over the keys of weights[r][j] * value[j] for Rows rows, columns <=
// Vectors * lanes, and all of them if Whole. If Sum, sums[r] = the sum of its weights: anywhere
// else its chain would be waited for.
template <int Rows, int Vectors, bool Whole, bool Sum>
[[gnu::noinline]] void weigh_columns(const float* weights, extent keys, const float* value,
                                     extent stride, extent columns, result_matrix out,
                                     float* sums) {
  tile<Rows, Vectors> sum;
  std::array<simd::batch, Rows> total;
  for (auto& row : sum) row.fill(simd::zero());
  total.fill(simd::zero());
  for (extent j = 0; j < keys; ++j, value += stride) {
    std::array<simd::batch, Vectors> numbers;
    for (int v = 0; v < Vectors; ++v) {
      const float* at = value + v * simd::lanes;
      numbers[v] = Whole ? simd::load(at) : load_row(at, columns - v * simd::lanes);
    }
    for (int r = 0; r < Rows; ++r) {
      const simd::batch weight = simd::broadcast(weights[r * weight_stride + j]);
      if (Sum) total[r] = total[r] + weight;
      for (int v = 0; v < Vectors; ++v) sum[r][v] = simd::madd(weight, numbers[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    write_row(sum[r], out.data + r * out.row_stride, write::store);
    if (Sum) sums[r] = simd::first_lane(total[r]);
  }
}

// Writes whole batches to the rows of `out`, and the sums of the weights of each.
template <int Rows>
void weigh_values(const float* weights, extent keys, const float* value, extent stride,
                  extent value_dim, result_matrix out, float* sums) {
  constexpr int vectors = 8 / Rows;
  constexpr extent wide = vectors * simd::lanes;
  extent d = 0;
  // One row alone has the registers for its sum too.
  if (Rows == 1 && wide <= value_dim) {
    weigh_columns<Rows, vectors, true, Rows == 1>(weights, keys, value, stride, wide, out, sums);
    d = wide;
  } else {
    weigh_columns<Rows, 0, true, true>(weights, keys, value, stride, 0, out, sums);
  }
  for (; d + wide <= value_dim; d += wide) {
    weigh_columns<Rows, vectors, true, false>(weights, keys, value + d, stride, wide,
                                              {out.data + d, out.row_stride}, sums);
  }
  for (; d < value_dim; d += simd::lanes) {
    weigh_columns<Rows, 1, false, false>(weights, keys, value + d, stride, value_dim - d,
                                         {out.data + d, out.row_stride}, sums);
  }
}

}  // namespace qkv::kernels
