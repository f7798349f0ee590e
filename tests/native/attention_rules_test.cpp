// Faults that other libraries had with masks, windows, caps and sinks, each with the right value;
// the ids are those of our bug log.
#include "support/attention_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();

// A bias that is the same in every row.
view<const float, 4> key_bias(const std::vector<float>& values, extent query_len = 1) {
  return {values.data(), {1, 1, query_len, static_cast<extent>(values.size())}, {0, 0, 0, 1}};
}

void check_out(const attention_case& one, const std::vector<double>& expected,
               double tolerance = 1e-6) {
  CHECK_LE(largest_error(one.run().out, expected), tolerance);
  one.check();
}

}  // namespace

TEST_CASE("B08: each batch of a padded cache has its own offset") {
  for (const auto& [valid, offset, expected] :
       {std::tuple<std::int32_t, std::int32_t, std::vector<double>>{2, 0, {2, 2.5, 1, 1.5}},
        {1, -1, {2, 2.5, 0, 1}}}) {
    attention_case one({2, 1, 1, 2, 4, 1, 1}, 1);
    std::fill(one.query.begin(), one.query.end(), 0.0f);
    one.value = {1, 2, 3, 4, 1, 2, 3, 4};
    const std::int32_t lengths[] = {4, valid}, offsets[] = {2, offset};
    one.rules.mask.causal = true;
    one.rules.mask.key_lengths = lengths;
    one.rules.mask.query_offsets = offsets;
    check_out(one, expected);
  }
}

TEST_CASE("B10, B11: a window counts keys to each side and needs no mask") {
  attention_case one = mean_of_values(4, {1, 2, 3, 4});
  one.rules.mask.window_left = 1;
  one.rules.mask.window_right = 0;
  check_out(one, {1, 1.5, 2.5, 3.5});
  one.rules.mask.window_left = 0;
  check_out(one, {1, 2, 3, 4});
  one.rules.mask.window_left = unlimited;
  one.rules.mask.window_right = 1;
  check_out(one, {1.5, 2, 2.5, 2.5});
  one.rules.mask.causal = true;
  check_out(one, {1, 1.5, 2, 2.5});
}

TEST_CASE("B12: a window counts from the query's absolute position") {
  attention_case one = mean_of_values(1, {1, 2, 3, 4});
  one.rules.mask.window_left = 1;
  one.rules.mask.window_right = 0;
  one.rules.mask.query_offset = 3;
  check_out(one, {3.5});
}

TEST_CASE("B13: an additive mask of 0 and -Infinity is one") {
  attention_case one = mean_of_values(1, {1, 2, 3});
  const std::vector<float> bias{0, -infinity, 0};
  one.rules.bias = key_bias(bias);
  check_out(one, {2});
  one.key[1] = one.value[1] = quiet_nan;
  CHECK_EQ(one.run().out, std::vector<float>{2});
}

TEST_CASE("B16: a bias broadcasts alike in every shape") {
  attention_case one({2, 3, 3, 5, 5, 4, 4}, 1);
  std::vector<float> bias(25), full;
  for (extent i = 0; i < 25; ++i)
    bias[i] = 0.1f * static_cast<float>(i / 5) - 0.2f * static_cast<float>(i % 5);
  for (int copy = 0; copy < 6; ++copy) full.insert(full.end(), bias.begin(), bias.end());
  one.rules.bias = view<const float, 4>::contiguous(full.data(), one.score_shape());
  const auto expected = one.run();
  one.rules.bias = {bias.data(), one.score_shape(), {0, 0, 5, 1}};
  CHECK(one.run() == expected);
}

TEST_CASE("B17, B19: the soft cap comes before bias and masks, and never overflows") {
  attention_case masked = scores_case({0, 0}, {1, 1000});
  masked.rules.softcap = 2;
  masked.allowed = {1, 0};
  masked.mask_shape = {1, 1, 1, 2};
  check_out(masked, {1});
  attention_case biased = scores_case({0, 0}, {0, 1});
  biased.rules.softcap = 2;
  const std::vector<float> bias{0, 3};
  biased.rules.bias = key_bias(bias);
  check_out(biased, {0.952574});
  for (float score : {100.0f, 1e30f}) {
    attention_case large = scores_case({score, 0}, {1, 2});
    large.rules.softcap = 1;
    check_out(large, {1.268941});
  }
}

TEST_CASE("B22: a bias of the lowest float is no mask until a sum overflows") {
  const std::vector<float> bias(4, lowest);
  for (const auto& [score, expected] : {std::pair{0.0f, 2.5}, {-16.0f, 2.5}, {-1e32f, 0.0}}) {
    attention_case one = scores_case(std::vector<float>(4, score), {1, 2, 3, 4});
    one.rules.bias = key_bias(bias);
    check_out(one, {expected});
  }
}

TEST_CASE("B32: a sink is one more logit of the row, in log_sum_exp too") {
  const float sink = 0;
  attention_case one = scores_case({0, 0}, {3, 6});
  one.rules.sinks = &sink;
  check_out(one, {3});
  CHECK_EQ(one.run().log_sum_exp[0], doctest::Approx(1.098612).epsilon(1e-6));
  attention_case many = mean_of_values(1, std::vector<float>(200, 1.0f));
  many.rules.sinks = &sink;
  check_out(many, {200.0 / 201.0});
  one.allowed = {0, 0};
  one.mask_shape = {1, 1, 1, 2};
  CHECK_EQ(one.run().out, std::vector<float>{0});
  CHECK_EQ(one.run().log_sum_exp, std::vector<float>{-infinity});
}

TEST_CASE("B39: ALiBi counts from the query's own position") {
  const float slope = 0.5;
  attention_case one = mean_of_values(1, {1, 2, 3});
  one.rules.alibi_slopes = &slope;
  one.rules.mask.query_offset = 2;
  check_out(one, {2.320157});
}

TEST_CASE("B33, B47: packed sequences see themselves alone, empty ones nothing") {
  const std::int32_t offsets[] = {0, 1, 3, 5};
  attention_case one = mean_of_values(5, {10, 1, 3, 5, 7});
  one.rules.sequences = {3, offsets, offsets};
  check_out(one, {10, 2, 2, 6, 6});
  one.rules.mask.causal = true;
  check_out(one, {10, 1, 2, 5, 6});
  const auto before = one.run();
  one.value[0] = 99;
  const auto after = one.run();
  CHECK(std::equal(after.out.begin() + 1, after.out.end(), before.out.begin() + 1));

  const std::int32_t with_empty[] = {0, 2, 2, 5};
  one.rules.sequences = {3, with_empty, with_empty};
  one.rules.mask.causal = false;
  check_out(one, {50, 50, 5, 5, 5});
  // Keys that are not there: a sequence of queries without keys.
  const std::int32_t no_keys[] = {0, 2, 2, 2}, all_queries[] = {0, 2, 4, 5};
  attention_case bare = mean_of_values(5, {1, 3});
  bare.rules.sequences = {3, all_queries, no_keys};
  check_out(bare, {2, 2, 0, 0, 0});
}

TEST_CASE("chosen heads and queries have the bits of all of them") {
  attention_case one({2, 4, 2, 70, 90, 8, 8}, 3);
  one.set_causal_bottom_right();
  const auto all = one.run();
  const std::int32_t heads[] = {3, 0}, queries[] = {69, 5, 6, 7, 64};
  std::vector<float> chosen(2 * 2 * 5 * 90, quiet_nan), mean(2 * 70 * 90, quiet_nan);
  attention_outputs outputs;
  std::vector<float> out(all.out.size());
  outputs.out = view<float, 4>::contiguous(out.data(), {2, 4, 70, 8});
  outputs.weights = view<float, 4>::contiguous(chosen.data(), {2, 2, 5, 90});
  outputs.weight_heads = view<const std::int32_t, 1>::contiguous(heads, {2});
  outputs.weight_queries = view<const std::int32_t, 1>::contiguous(queries, {5});
  outputs.mean_weights = view<float, 3>::contiguous(mean.data(), {2, 70, 90});
  thread_pool pool(2);
  scratch memory(attention_workspace_bytes(8, 8, pool.size()) +
                 attention_statistics_bytes(2, 4, 70));
  REQUIRE_EQ(attention_forward(one.inputs(), one.options(), outputs, memory, pool), status::ok);
  CHECK_EQ(out, all.out);
  const auto weight = [&](extent b, extent h, extent i, extent j) {
    return all.weights[((b * 4 + h) * 70 + i) * 90 + j];
  };
  for (extent b = 0; b < 2; ++b) {
    for (extent j = 0; j < 90; ++j) {
      for (extent h = 0; h < 2; ++h) {
        for (extent i = 0; i < 5; ++i)
          CHECK_EQ(chosen[((b * 2 + h) * 5 + i) * 90 + j], weight(b, heads[h], queries[i], j));
      }
      const float sum =
          weight(b, 0, 33, j) + weight(b, 1, 33, j) + weight(b, 2, 33, j) + weight(b, 3, 33, j);
      CHECK_EQ(mean[(b * 70 + 33) * 90 + j], doctest::Approx(sum / 4).epsilon(1e-6));
    }
  }
}

TEST_CASE("scores at each stage") {
  attention_case one = scores_case({3, 5, 1}, {0, 0, 0});
  one.scale = 2;
  one.rules.softcap = 4;
  const std::vector<float> bias{1, 0, -infinity};
  one.rules.bias = key_bias(bias);
  one.rules.mask.window_right = 1;
  for (const auto& [stage, expected] :
       {std::pair<score_stage, std::vector<double>>{score_stage::scaled, {6, 10, 2}},
        {score_stage::capped, {3.6205930, 3.9464572, 1.8484686}},
        {score_stage::biased, {4.6205930, 3.9464572, -infinity}}}) {
    std::vector<float> scores(3, quiet_nan);
    attention_outputs outputs;
    outputs.scores = view<float, 4>::contiguous(scores.data(), {1, 1, 1, 3});
    outputs.stage = stage;
    thread_pool pool(1);
    scratch memory(attention_workspace_bytes(1, 1, 1));
    REQUIRE_EQ(attention_forward(one.inputs(), one.options(), outputs, memory, pool), status::ok);
    CHECK_LE(largest_error(scores, expected), 1e-6);
  }
}

TEST_CASE("dropout drops its share, keeps the mean, and is the same for any threads") {
  attention_case one = mean_of_values(64, std::vector<float>(2000, 1.0f));
  one.rules.dropout = {0.25f, 7};
  const auto made = one.run();
  CHECK(one.run(3) == made);
  double sum = 0;
  for (float x : made.out) sum += x;
  CHECK_EQ(sum / 64, doctest::Approx(1).epsilon(0.01));
  for (float weight : made.weights) REQUIRE_EQ(weight, 1.0f / 2000);
  one.check();
  one.rules.dropout.seed = 8;
  CHECK_NE(one.run().out, made.out);
}
