// The plain gradients of attention, which the kernels are held to, against finite differences.
#include "qkv/reference_attention.hpp"

#include "support/gradcheck.hpp"
#include "support/random_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

// A problem in doubles, all of which may be changed.
struct double_case {
  const random_case one;
  std::vector<double> query, key, value, bias, sinks, d_out;
  reference::attention_rules<double> rules;

  explicit double_case(std::uint64_t seed)
      : one(seed, {7, 9, 5}),
        query(to_double(one.query)),
        key(to_double(one.key)),
        value(to_double(one.value)),
        d_out(to_double(number_source(seed + 1).floats(one.sizes.batch * one.sizes.num_heads *
                                                       one.sizes.query_len * one.sizes.value_dim))),
        rules(one.reference_rules<double>()) {
    const attention_sizes& sizes = one.sizes;
    for (extent h = 0; rules.sink && h < sizes.num_heads; ++h) sinks.push_back(rules.sink(h));
    if (rules.sink) rules.sink = [&](extent h) { return sinks[h]; };
    if (!rules.bias) return;
    const auto all = [&](auto visit) {
      for (extent b = 0; b < sizes.batch; ++b)
        for (extent h = 0; h < sizes.num_heads; ++h)
          for (extent i = 0; i < sizes.query_len; ++i)
            for (extent j = 0; j < sizes.key_len; ++j) visit(b, h, i, j);
    };
    all([&](auto... at) { bias.push_back(rules.bias(at...)); });
    rules.bias = [&](extent b, extent h, extent i, extent j) {
      return bias[((b * sizes.num_heads + h) * sizes.query_len + i) * sizes.key_len + j];
    };
  }

  double_case(const double_case&) = delete;

  double loss() const {
    return weighted_sum(reference::attention(query, key, value, one.sizes, rules).out, d_out);
  }
};

}  // namespace

TEST_CASE("the plain gradients of attention are those of its loss, for random shapes and options") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    double_case one(seed);
    CAPTURE(seed);
    const auto made = reference::attention_backward(one.d_out, one.query, one.key, one.value,
                                                    one.one.sizes, one.rules);
    const auto loss = [&] { return one.loss(); };
    check_gradient(one.query, made.d_query, loss);
    check_gradient(one.key, made.d_key, loss);
    check_gradient(one.value, made.d_value, loss);
    if (one.rules.bias) check_gradient(one.bias, made.d_bias, loss);
    if (one.rules.sink) check_gradient(one.sinks, made.d_sinks, loss);

    // What is 0 but for rounding has no relative error, so the other way is held against this one.
    const auto other =
        reference::attention_backward(one.d_out, one.query, one.key, one.value, one.one.sizes,
                                      one.rules, reference::softmax_product::of_output);
    const double rounding = 1e-12;
    CHECK_LT(largest_error(other.d_query, made.d_query), rounding);
    CHECK_LT(largest_error(other.d_key, made.d_key), rounding);
    CHECK_EQ(other.d_value, made.d_value);
    CHECK_LT(largest_error(other.d_bias, made.d_bias), rounding);
    CHECK_LT(largest_error(other.d_sinks, made.d_sinks), rounding);
  }
}
