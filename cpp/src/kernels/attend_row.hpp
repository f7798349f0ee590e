// One query against keys and values as they lie: packing them into panels costs more than it saves
// where each is used once. Every sum is the same chain of multiply-adds as in the panels' kernels,
// so a query's bits do not depend on how many others came with it.
#pragma once

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

// The query lies alone in a column panel. Writes `keys` scores, rounded up to whole batches.
inline void score_row(extent head_dim, const float* key, extent stride, extent keys,
                      const float* query, float* scores) {
  // Two chains at once, so that they do not wait for each other.
  constexpr extent pair = 2 * simd::lanes;
  extent j = 0;
  for (; j + pair <= keys; j += pair) {
    score_keys<2>(head_dim, key + j * stride, stride, pair, query, scores + j);
  }
  for (; j < keys; j += simd::lanes) {
    score_keys<1>(head_dim, key + j * stride, stride, keys - j - 1, query, scores + j);
  }
}

// online_softmax() of one query, whose scores lie side by side.
inline void online_softmax_row(float* scores, extent keys, softmax_rows row) {
  float largest = *row.max;
  for (extent j = 0; j < keys; ++j) largest = scores[j] > largest ? scores[j] : largest;
  const simd::batch shift = softmax_shift(simd::broadcast(largest));
  map_row(scores, keys, scores,
          [&](simd::batch score) { return simd::exp_nonpositive(score - shift); });
  float sum = 0;
  for (extent j = 0; j < keys; ++j) sum += scores[j];
  const simd::batch rescale = simd::exp_nonpositive(simd::broadcast(*row.max) - shift);
  *row.max = largest;
  *row.sum = simd::first_lane(simd::madd(simd::broadcast(*row.sum), rescale, simd::broadcast(sum)));
  *row.rescale = simd::first_lane(rescale);
}

// out[0 ... columns) += sum over the keys of weights[j] * value[j], columns <= Vectors * lanes.
template <int Vectors>
[[gnu::noinline]] void weigh_columns(const float* weights, extent keys, const float* value,
                                     extent stride, extent columns, float* out) {
  std::array<simd::batch, Vectors> sum;
  sum.fill(simd::zero());
  for (extent j = 0; j < keys; ++j, value += stride) {
    const simd::batch weight = simd::broadcast(weights[j]);
    for (int v = 0; v < Vectors; ++v) {
      const extent column = v * simd::lanes;
      sum[v] = simd::madd(weight, load_row(value + column, columns - column), sum[v]);
    }
  }
  for (int v = 0; v < Vectors; ++v) {
    float* to = out + v * simd::lanes;
    simd::store(to, simd::load(to) + sum[v]);
  }
}

// `out` holds whole batches.
inline void weigh_values(const float* weights, extent keys, const float* value, extent stride,
                         extent value_dim, float* out) {
  constexpr int vectors = 8;
  extent d = 0;
  for (; d + vectors * simd::lanes <= value_dim; d += vectors * simd::lanes) {
    weigh_columns<vectors>(weights, keys, value + d, stride, vectors * simd::lanes, out + d);
  }
  for (; d < value_dim; d += simd::lanes) {
    weigh_columns<1>(weights, keys, value + d, stride, value_dim - d, out + d);
  }
}

}  // namespace qkv::kernels
