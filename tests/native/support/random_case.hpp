// Attention problems of seeded random shapes and options, all at once.
#pragma once

#include "support/attention_case.hpp"

namespace qkv::test {

struct size_limits {
  extent query_len = 90, key_len = 160, dim = 24;
};

// An attention problem with the memory that its options point to.
struct random_case : attention_case {
  std::vector<float> bias_data, slopes, sinks;
  std::vector<std::int32_t> offsets, lengths, query_packs, key_packs;

  static attention_sizes sizes_from(number_source& numbers, const size_limits& limits) {
    const extent kv_heads = 1 + numbers.below(3), group = 1 + numbers.below(3);
    return {1 + numbers.below(3),
            kv_heads * group,
            kv_heads,
            1 + numbers.below(limits.query_len),
            1 + numbers.below(limits.key_len),
            1 + numbers.below(limits.dim),
            1 + numbers.below(limits.dim)};
  }

  explicit random_case(std::uint64_t seed, const size_limits& limits = {})
      : random_case(seed, number_source(seed), limits) {}

  random_case(std::uint64_t seed, number_source numbers, const size_limits& limits)
      : attention_case(sizes_from(numbers, limits), seed, numbers.below(4) == 0 ? 6 : 1) {
    const auto maybe = [&] { return numbers.below(3) == 0; };
    const auto offset = [&] { return numbers.below(2 * sizes.key_len + 1) - sizes.key_len; };
    attention_mask& mask = rules.mask;
    mask.causal = maybe();
    if (maybe()) mask.window_left = numbers.below(sizes.key_len);
    if (maybe()) mask.window_right = numbers.below(sizes.key_len);
    if (maybe()) mask.query_offset = offset();
    if (maybe()) pack(numbers);
    const extent count = rules.sequences.count > 0 ? rules.sequences.count : sizes.batch;
    if (maybe()) {
      for (extent i = 0; i < count; ++i) offsets.push_back(static_cast<std::int32_t>(offset()));
      mask.query_offsets = offsets.data();
    }
    if (rules.sequences.count == 0 && maybe()) {
      for (extent b = 0; b < sizes.batch; ++b) {
        lengths.push_back(static_cast<std::int32_t>(numbers.below(sizes.key_len + 1)));
      }
      mask.key_lengths = lengths.data();
    }
    if (maybe()) allow_some(numbers);
    if (maybe()) add_bias(numbers);
    if (maybe()) {
      slopes = numbers.floats(sizes.num_heads, 0.5);
      rules.alibi_slopes = slopes.data();
    }
    if (maybe()) {
      sinks = numbers.floats(sizes.num_heads, 3);
      rules.sinks = sinks.data();
    }
    if (maybe()) rules.softcap = 2;
    if (maybe()) rules.dropout = {0.3f, seed};
  }

  random_case(const random_case&) = delete;

  void pack(number_source& numbers) {
    for (std::vector<float>* tensor : {&query, &key, &value}) {
      tensor->resize(tensor->size() / sizes.batch);
    }
    sizes.batch = 1;
    const extent count = 1 + numbers.below(5);
    const auto split = [&](extent length) {
      std::vector<std::int32_t> cuts{0, static_cast<std::int32_t>(length)};
      for (extent i = 1; i < count; ++i) {
        cuts.push_back(static_cast<std::int32_t>(numbers.below(length + 1)));
      }
      std::sort(cuts.begin(), cuts.end());
      return cuts;
    };
    query_packs = split(sizes.query_len);
    key_packs = split(sizes.key_len);
    rules.sequences = {count, query_packs.data(), key_packs.data()};
  }

  void allow_some(number_source& numbers) {
    mask_shape = score_shape();
    extent count = 1;
    for (extent& length : mask_shape) count *= length = numbers.below(2) == 0 ? 1 : length;
    for (extent i = 0; i < count; ++i) allowed.push_back(numbers.uniform() < 0.7);
  }

  void add_bias(number_source& numbers) {
    auto shape = score_shape();
    for (extent& length : shape) length = numbers.below(2) == 0 ? 1 : length;
    bias_data = numbers.floats(shape[0] * shape[1] * shape[2] * shape[3], 2);
    for (float& x : bias_data) {
      if (numbers.uniform() < 0.1) x = -std::numeric_limits<float>::infinity();
    }
    rules.bias = view<const float, 4>::contiguous(bias_data.data(), shape);
    for (int axis = 0; axis < 4; ++axis) {
      if (shape[axis] == 1) rules.bias.strides[axis] = 0;
    }
    rules.bias.shape = score_shape();
  }
};

}  // namespace qkv::test
