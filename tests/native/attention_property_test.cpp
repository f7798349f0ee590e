// Seeded random shapes and options, all at once.
#include <numeric>

#include "support/random_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

// All heads and queries, each by its number: those are computed in a pass of their own.
std::vector<float> chosen_weights(const attention_case& one) {
  const auto& [batch, heads, kv_heads, queries, keys, head_dim, value_dim] = one.sizes;
  std::vector<std::int32_t> head_numbers(heads), query_numbers(queries);
  std::iota(head_numbers.begin(), head_numbers.end(), 0);
  std::iota(query_numbers.begin(), query_numbers.end(), 0);
  std::vector<float> weights(batch * heads * queries * keys, quiet_nan);
  attention_outputs outputs;
  outputs.weights = view<float, 4>::contiguous(weights.data(), one.score_shape());
  outputs.weight_heads = view<const std::int32_t, 1>::contiguous(head_numbers.data(), {heads});
  outputs.weight_queries = view<const std::int32_t, 1>::contiguous(query_numbers.data(), {queries});
  thread_pool pool(1);
  scratch memory(attention_workspace_bytes(head_dim, value_dim, 1) +
                 attention_statistics_bytes(batch, heads, queries));
  REQUIRE_EQ(attention_forward(one.inputs(), one.options(), outputs, memory, pool), status::ok);
  return weights;
}

}  // namespace

TEST_CASE(
    "random shapes and options: right, the same bits for any threads and extras, rows that sum to "
    "1") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const random_case one(seed);
    CAPTURE(seed);
    one.check();
    const auto made = one.run();
    const extent key_len = one.sizes.key_len;
    const bool sinks = one.rules.sinks != nullptr;
    for (extent row = 0; row * key_len < static_cast<extent>(made.weights.size()); ++row) {
      double sum = 0;
      for (extent j = 0; j < key_len; ++j) sum += made.weights[row * key_len + j];
      if (made.log_sum_exp[row] == -std::numeric_limits<float>::infinity()) {
        CHECK_EQ(sum, 0);
      } else if (!sinks) {
        CHECK_EQ(sum, doctest::Approx(1).epsilon(1e-5));
      }
    }
    if (seed % 8 == 0) {
      CHECK_EQ(one.run(1, false).out, made.out);
      CHECK(one.run(3) == made);
      CHECK_EQ(chosen_weights(one), made.weights);
    }
  }
}

TEST_CASE(
    "random options over several tiles of keys: right, the same bits for any threads and extras") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const random_case one(seed, {12, 1200, 20});
    CAPTURE(seed);
    one.check();
    const auto made = one.run();
    for (int threads : {1, 2, 8}) {
      CHECK(one.run(threads) == made);
      CHECK_EQ(one.run(threads, false).out, made.out);
    }
  }
}
