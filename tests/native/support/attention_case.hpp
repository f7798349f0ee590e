// One attention problem with its memory, run by the library and by the reference.
#pragma once

#include <vector>

#include "kernels/dropout.hpp"
#include "qkv/qkv.hpp"
#include "qkv/reference.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

namespace qkv::test {

using reference::attention_sizes;

struct attention_case {
  attention_sizes sizes;
  std::vector<float> query, key, value;
  attention_options rules;                       // all but the scale and the mask below
  std::vector<std::uint8_t> allowed;             // empty, or one byte for each of mask_shape
  std::array<extent, 4> mask_shape{1, 1, 1, 1};  // 1 = broadcast
  float scale;

  attention_case(const attention_sizes& sizes, std::uint64_t seed, double magnitude = 1.0)
      : sizes(sizes), scale(default_scale(sizes.head_dim)) {
    number_source numbers(seed);
    query =
        numbers.floats(sizes.batch * sizes.num_heads * sizes.query_len * sizes.head_dim, magnitude);
    key = numbers.floats(sizes.batch * sizes.num_kv_heads * sizes.key_len * sizes.head_dim,
                         magnitude);
    value = numbers.floats(sizes.batch * sizes.num_kv_heads * sizes.key_len * sizes.value_dim);
  }

  // Query i sees key j only where j <= i + offset.
  void set_causal(extent offset) {
    rules.mask.causal = true;
    rules.mask.query_offset = offset;
  }
  void set_causal_bottom_right() { set_causal(sizes.key_len - sizes.query_len); }

  attention_inputs inputs() const {
    const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = sizes;
    return {
        view<const float, 4>::contiguous(query.data(), {batch, num_heads, query_len, head_dim}),
        view<const float, 4>::contiguous(key.data(), {batch, num_kv_heads, key_len, head_dim}),
        view<const float, 4>::contiguous(value.data(), {batch, num_kv_heads, key_len, value_dim})};
  }

  std::array<extent, 4> score_shape() const {
    return {sizes.batch, sizes.num_heads, sizes.query_len, sizes.key_len};
  }

  attention_options options() const {
    attention_options result = rules;
    result.scale = scale;
    if (allowed.empty()) return result;
    auto mask = view<const std::uint8_t, 4>::contiguous(allowed.data(), mask_shape);
    for (int axis = 0; axis < 4; ++axis) {
      if (mask_shape[axis] == 1) mask.strides[axis] = 0;
    }
    mask.shape = score_shape();
    result.mask.allowed = mask;
    return result;
  }

  struct result {
    std::vector<float> out, weights, log_sum_exp;
    bool operator==(const result&) const = default;
  };

  result run(int threads = 1, bool extras = true) const {
    const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = sizes;
    result made{std::vector<float>(batch * num_heads * query_len * value_dim, quiet_nan),
                std::vector<float>(extras ? batch * num_heads * query_len * key_len : 0, quiet_nan),
                std::vector<float>(extras ? batch * num_heads * query_len : 0, quiet_nan)};
    attention_outputs outputs;
    outputs.out =
        view<float, 4>::contiguous(made.out.data(), {batch, num_heads, query_len, value_dim});
    if (extras) {
      outputs.weights = view<float, 4>::contiguous(made.weights.data(), score_shape());
      outputs.log_sum_exp =
          view<float, 3>::contiguous(made.log_sum_exp.data(), {batch, num_heads, query_len});
    }
    thread_pool pool(threads);
    scratch memory(attention_workspace_bytes(head_dim, value_dim, pool.size()) +
                   attention_statistics_bytes(batch, num_heads, query_len));
    REQUIRE_EQ(attention_forward(inputs(), options(), outputs, memory, pool), status::ok);
    return made;
  }

  // Packed sequences by their first definition: the sequence that an index of an axis lies in.
  static extent sequence_at(const std::int32_t* offsets, extent count, extent at) {
    extent sequence = 0;
    while (sequence + 1 < count && offsets[sequence + 1] <= at) ++sequence;
    return sequence;
  }

  // Where query i and key j of a batch stand: in which sequence, and at which of its positions.
  struct standing {
    bool together;
    extent position, key;
  };
  standing stand(extent batch, extent i, extent j) const {
    const packed_sequences& packs = rules.sequences;
    if (packs.count == 0) return {true, i + rules.mask.offset_of(batch), j};
    const extent mine = sequence_at(packs.query_offsets, packs.count, i);
    const extent its = sequence_at(packs.key_offsets, packs.count, j);
    return {mine == its, i - packs.query_offsets[mine] + rules.mask.offset_of(mine),
            j - packs.key_offsets[its]};
  }

  bool visible(extent b, extent h, extent i, extent j) const {
    const attention_options all = options();
    const attention_mask& mask = all.mask;
    const standing at = stand(b, i, j);
    if (!at.together || (mask.causal && at.key > at.position)) return false;
    if (mask.window_left != unlimited && at.key < at.position - mask.window_left) return false;
    if (mask.window_right != unlimited && at.key > at.position + mask.window_right) return false;
    if (mask.key_lengths != nullptr && j >= mask.key_lengths[b]) return false;
    return !mask.allowed || mask.allowed(b, h, i, j) != 0;
  }

  template <typename T>
  reference::attention_rules<T> reference_rules() const {
    const attention_options all = options();
    reference::attention_rules<T> plain;
    plain.scale = static_cast<T>(scale);
    plain.softcap = static_cast<T>(all.softcap);
    plain.visible = [this](auto... at) { return visible(at...); };
    if (all.bias) plain.bias = [all](auto... at) { return static_cast<T>(all.bias(at...)); };
    if (all.alibi_slopes != nullptr) {
      plain.alibi = [this, all](extent b, extent h, extent i, extent j) {
        const standing at = stand(b, i, j);
        return static_cast<T>(all.alibi_slopes[h]) * static_cast<T>(std::abs(at.position - at.key));
      };
    }
    if (all.sinks != nullptr) plain.sink = [all](extent h) { return static_cast<T>(all.sinks[h]); };
    plain.dropped = [this, all](extent b, extent h, extent i, extent j) {
      const auto row = static_cast<std::uint64_t>((b * sizes.num_heads + h) * sizes.query_len + i);
      return kernels::dropout_row(all.dropout.seed, row).at(j) <
             kernels::dropout_bound(all.dropout.probability);
    };
    plain.kept = 1 - static_cast<T>(all.dropout.probability);
    return plain;
  }

  template <typename T>
  reference::attention_result<T> reference() const {
    return reference::attention<T>({query.begin(), query.end()}, {key.begin(), key.end()},
                                   {value.begin(), value.end()}, sizes, reference_rules<T>());
  }

  void check() const {
    CAPTURE(sizes.query_len);
    CAPTURE(sizes.key_len);
    CAPTURE(sizes.head_dim);
    CAPTURE(sizes.value_dim);
    const result made = run();
    const auto exact = reference<double>();
    // The dims in both orders: the same sums, rounded in another way, so that the plain loop is
    // right by luck half as often.
    attention_case backwards = *this;
    backwards.reverse_dims();
    const auto plain = reference<float>(), reversed = backwards.reference<float>();
    check_near(made.out, {plain.out, reversed.out}, exact.out);
    check_near(made.weights, {plain.weights, reversed.weights}, exact.weights);
    check_near(made.log_sum_exp, {plain.log_sum_exp, reversed.log_sum_exp}, exact.log_sum_exp);
  }

  void reverse_dims() {
    reverse_rows(query, sizes.head_dim);
    reverse_rows(key, sizes.head_dim);
  }
};

// One batch, one head, one dimension and queries of 0: every visible key is equally likely, so the
// output is the plain mean of the visible values.
inline attention_case mean_of_values(extent query_len, std::vector<float> values) {
  const extent key_len = static_cast<extent>(values.size());
  attention_case one({1, 1, 1, query_len, key_len, 1, 1}, 1);
  std::fill(one.query.begin(), one.query.end(), 0.0f);
  one.value = std::move(values);
  one.scale = 1;
  return one;
}

// One query of 1 against the given scores.
inline attention_case scores_case(std::vector<float> scores, std::vector<float> values) {
  attention_case one = mean_of_values(1, std::move(values));
  one.query = {1};
  one.key = std::move(scores);
  return one;
}

}  // namespace qkv::test
