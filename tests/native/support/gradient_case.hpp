// The gradients of one attention problem, by the library and by the reference.
#pragma once

#include "qkv/reference_attention.hpp"
#include "support/attention_case.hpp"

namespace qkv::test {

// A bias's shape: 1 where the case's view of it is broadcast.
inline std::array<extent, 4> bias_shape(const attention_case& one) {
  auto shape = one.score_shape();
  for (int axis = 0; axis < 4; ++axis) {
    if (one.rules.bias.strides[axis] == 0) shape[axis] = 1;
  }
  return shape;
}

// Where an element of the scores reads its bias.
inline extent bias_at(const attention_case& one, extent element) {
  const auto& strides = one.rules.bias.strides;
  const auto shape = one.score_shape();
  extent at = 0;
  for (int axis = 3; axis >= 0; element /= shape[axis--])
    at += element % shape[axis] * strides[axis];
  return at;
}

using reference::softmax_product;

template <typename T>
struct gradients {
  std::vector<T> d_query, d_key, d_value, d_bias, d_sinks;
  bool operator==(const gradients&) const = default;
};

// Elements of d_out that are nothing round.
inline std::vector<float> output_gradient(const attention_case& one) {
  const attention_sizes& sizes = one.sizes;
  return number_source(77).floats(sizes.batch * sizes.num_heads * sizes.query_len *
                                  sizes.value_dim);
}

inline gradients<float> run_backward(const attention_case& one, const std::vector<float>& d_out,
                                     int threads = 1) {
  const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = one.sizes;
  const attention_options options = one.options();
  const auto filled = [](std::size_t count) { return std::vector<float>(count, quiet_nan); };
  gradients<float> made{
      filled(one.query.size()), filled(one.key.size()), filled(one.value.size()), {}, {}};
  attention_gradients to;
  to.d_query =
      view<float, 4>::contiguous(made.d_query.data(), {batch, num_heads, query_len, head_dim});
  to.d_key =
      view<float, 4>::contiguous(made.d_key.data(), {batch, num_kv_heads, key_len, head_dim});
  to.d_value =
      view<float, 4>::contiguous(made.d_value.data(), {batch, num_kv_heads, key_len, value_dim});
  if (options.bias) {
    const auto shape = bias_shape(one);
    made.d_bias = filled(shape[0] * shape[1] * shape[2] * shape[3]);
    to.d_bias = {made.d_bias.data(), options.bias.shape, options.bias.strides};
  }
  if (options.sinks != nullptr) {
    made.d_sinks = filled(num_heads);
    to.d_sinks = made.d_sinks.data();
  }
  thread_pool pool(threads);
  scratch memory(attention_backward_workspace_bytes(one.inputs(), pool.size()));
  const auto d_out_view =
      view<const float, 4>::contiguous(d_out.data(), {batch, num_heads, query_len, value_dim});
  REQUIRE_EQ(attention_backward(d_out_view, one.inputs(), options, to, memory, pool), status::ok);
  return made;
}

// Turns the order of the rows of each head.
template <typename T>
void reverse_lengths(std::vector<T>& rows, extent length, extent dim) {
  for (auto head = rows.begin(); head != rows.end(); head += length * dim) {
    std::reverse(head, head + length * dim);
  }
  if (dim == 0) return;
  for (auto row = rows.begin(); row != rows.end(); row += dim) std::reverse(row, row + dim);
}

// The order in which the plain loop goes through queries and keys.
enum class order { rising, falling };

template <typename T>
reference::attention_rules<T> falling(const reference::attention_rules<T>& rules,
                                      const attention_sizes& sizes) {
  const auto turned = [&](const auto& rule) {
    auto made = rule;
    if (rule) {
      made = [rule, sizes](extent b, extent h, extent i, extent j) {
        return rule(b, h, sizes.query_len - 1 - i, sizes.key_len - 1 - j);
      };
    }
    return made;
  };
  reference::attention_rules<T> made = rules;
  made.bias = turned(rules.bias);
  made.alibi = turned(rules.alibi);
  made.visible = turned(rules.visible);
  made.dropped = turned(rules.dropped);
  return made;
}

template <typename T>
reference::attention_gradients<T> plain_gradients(const attention_case& one,
                                                  const std::vector<float>& d_out, order way,
                                                  softmax_product product) {
  const auto& [batch, num_heads, num_kv_heads, query_len, key_len, head_dim, value_dim] = one.sizes;
  const auto turn = [&](std::vector<T>& rows, extent length, extent dim) {
    if (way == order::falling && length * dim > 0) reverse_lengths(rows, length, dim);
  };
  const auto prepared = [&](const std::vector<float>& x, extent length, extent dim) {
    std::vector<T> rows(x.begin(), x.end());
    turn(rows, length, dim);
    return rows;
  };
  const auto rules = one.reference_rules<T>();
  auto made = reference::attention_backward<T>(
      prepared(d_out, query_len, value_dim), prepared(one.query, query_len, head_dim),
      prepared(one.key, key_len, head_dim), prepared(one.value, key_len, value_dim), one.sizes,
      way == order::falling ? falling(rules, one.sizes) : rules, product);
  turn(made.d_query, query_len, head_dim);
  turn(made.d_key, key_len, head_dim);
  turn(made.d_value, key_len, value_dim);
  turn(made.d_bias, query_len * key_len, 1);
  return made;
}

template <typename T>
gradients<T> reference_gradients(const attention_case& one, const std::vector<float>& d_out,
                                 order way = order::rising,
                                 softmax_product product = softmax_product::of_weights) {
  const auto plain = plain_gradients<T>(one, d_out, way, product);
  gradients<T> made{plain.d_query, plain.d_key, plain.d_value, {}, {}};
  if (one.rules.sinks != nullptr) made.d_sinks = plain.d_sinks;
  if (!one.rules.bias) return made;
  const auto shape = bias_shape(one);
  made.d_bias.resize(shape[0] * shape[1] * shape[2] * shape[3]);
  const auto count = static_cast<extent>(plain.d_bias.size());
  for (extent i = 0; i < count; ++i) {
    const extent at = way == order::rising ? i : count - 1 - i;
    made.d_bias[bias_at(one, at)] += plain.d_bias[at];
  }
  return made;
}

// The plain loop, and the same sums in other orders, which are as good as the first.
constexpr int plain_orders = 16;

inline gradients<float> plain_order(int number, const attention_case& one,
                                    const std::vector<float>& d_out) {
  const bool dims_reversed = number & 1, scale_first = number & 2;
  const order way = number & 4 ? order::falling : order::rising;
  const auto product = number & 8 ? softmax_product::of_output : softmax_product::of_weights;
  attention_case changed = one;
  std::vector<float> changed_d_out = d_out;
  if (scale_first) {
    for (float& x : changed.query) x *= one.scale;
    changed.scale = 1;
  }
  if (dims_reversed) {
    changed.reverse_dims();
    reverse_rows(changed.value, one.sizes.value_dim);
    reverse_rows(changed_d_out, one.sizes.value_dim);
  }
  auto plain = reference_gradients<float>(changed, changed_d_out, way, product);
  if (dims_reversed) {
    reverse_rows(plain.d_query, one.sizes.head_dim);
    reverse_rows(plain.d_key, one.sizes.head_dim);
    reverse_rows(plain.d_value, one.sizes.value_dim);
  }
  for (float& x : plain.d_query) x *= scale_first ? one.scale : 1.0f;
  return plain;
}

// The largest error of each gradient, and what it may be.
struct gradient_errors {
  static constexpr auto names =
      std::to_array<const char*>({"d_query", "d_key", "d_value", "d_bias", "d_sinks"});
  std::array<double, names.size()> errors, allowed{};

  template <typename T>
  static std::array<const std::vector<T>*, names.size()> list(const gradients<T>& of) {
    return {&of.d_query, &of.d_key, &of.d_value, &of.d_bias, &of.d_sinks};
  }

  gradient_errors(const gradients<float>& made, const gradients<double>& exact) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      errors[i] = largest_error(*list(made)[i], *list(exact)[i]);
    }
  }

  void allow(const gradients<float>& plain, const gradients<double>& exact) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      allowed[i] = std::max(allowed[i], allowed_error(*list(plain)[i], *list(exact)[i]));
    }
  }

  bool fine() const {
    return std::equal(errors.begin(), errors.end(), allowed.begin(), std::less_equal());
  }
};

// Some gradients are next to nothing but rounding, where one order of the sums may be right by
// luck: the worst of them counts.
inline void check_backward(const attention_case& one) {
  CAPTURE(one.sizes.query_len);
  CAPTURE(one.sizes.key_len);
  CAPTURE(one.sizes.head_dim);
  CAPTURE(one.sizes.value_dim);
  const auto d_out = output_gradient(one);
  const auto exact = reference_gradients<double>(one, d_out);
  gradient_errors result(run_backward(one, d_out), exact);
  for (int number = 0; number < plain_orders && (number == 0 || !result.fine()); ++number) {
    result.allow(plain_order(number, one, d_out), exact);
  }
  for (std::size_t i = 0; i < result.names.size(); ++i) {
    CAPTURE(std::string(result.names[i]));
    CHECK_LE(result.errors[i], result.allowed[i]);
  }
}

}  // namespace qkv::test
