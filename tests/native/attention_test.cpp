#include "support/attention_case.hpp"
#include "support/cases.hpp"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("attention is right at every length around a tile") {
  for (extent query_len : lengths) {
    for (extent key_len : lengths) attention_case({1, 1, 1, query_len, key_len, 20, 5}, 1).check();
  }
}

TEST_CASE("attention is right at every dim around a panel") {
  for (extent head_dim : dims) {
    for (extent value_dim : dims) attention_case({1, 2, 2, 17, 65, head_dim, value_dim}, 2).check();
  }
}

TEST_CASE("attention is right for batches, grouped heads and large scores") {
  attention_case({3, 4, 4, 9, 21, 16, 16}, 3).check();
  attention_case({2, 6, 2, 33, 40, 8, 12}, 4).check();
  attention_case({1, 4, 1, 5, 300, 64, 64}, 5, 8.0).check();
}

TEST_CASE("a grouped query head reads the key head of its group") {
  attention_case one({1, 4, 2, 1, 1, 1, 1}, 1);
  one.value = {10, 20};
  CHECK_EQ(one.run().out, std::vector<float>{10, 10, 20, 20});
}

TEST_CASE("causal is right at both alignments") {
  for (extent query_len : lengths) {
    for (extent key_len : {1, 5, 64, 130}) {
      attention_case one({1, 2, 2, query_len, key_len, 5, 3}, 6);
      one.set_causal(0);
      one.check();
      one.set_causal_bottom_right();
      one.check();
      one.set_causal(-3);
      one.check();
    }
  }
}

TEST_CASE("causal alignments differ where the lengths do") {
  attention_case wide = mean_of_values(2, {1, 2, 3, 4, 5});
  wide.set_causal(0);
  CHECK_EQ(wide.run().out, std::vector<float>{1, 1.5});
  wide.set_causal_bottom_right();
  CHECK_EQ(wide.run().out, std::vector<float>{2.5, 3});

  attention_case tall = mean_of_values(5, {1, 2});
  tall.set_causal_bottom_right();
  CHECK_EQ(tall.run().out, std::vector<float>{0, 0, 0, 1, 1.5});
}

TEST_CASE("a mask is right in every broadcast shape") {
  number_source numbers(7);
  const std::array<extent, 4> full{2, 3, 19, 70};
  for (unsigned kept = 0; kept < 16; ++kept) {
    attention_case one({full[0], full[1], full[1], full[2], full[3], 8, 8}, 8);
    extent count = 1;
    for (int axis = 0; axis < 4; ++axis) {
      one.mask_shape[axis] = kept >> axis & 1 ? full[axis] : 1;
      count *= one.mask_shape[axis];
    }
    for (extent i = 0; i < count; ++i) one.allowed.push_back(numbers.uniform() < 0.6);
    one.check();
    one.set_causal_bottom_right();
    one.check();
  }
}

TEST_CASE("a row that sees nothing gives zeros and a log_sum_exp of -Infinity") {
  attention_case one({1, 1, 1, 2, 2, 2, 2}, 1);
  one.query = one.key = {1, 0, 0, 1};
  one.value = {1, 2, 3, 4};
  one.allowed = {1, 1, 0, 0};
  one.mask_shape = {1, 1, 2, 2};
  const auto made = one.run();
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  const std::vector<double> out{1.6604769, 2.6604769, 0, 0}, weights{0.6697615, 0.3302385, 0, 0};
  CHECK_LE(largest_error(made.out, out), 1e-6);
  CHECK_LE(largest_error(made.weights, weights), 1e-6);
  CHECK_LE(largest_error(made.log_sum_exp, {1.1079401, minus_infinity}), 1e-6);
}

TEST_CASE("NaN and Infinity in a forbidden key or value leave no trace") {
  for (float poison : {quiet_nan, std::numeric_limits<float>::infinity()}) {
    attention_case one = scores_case({0, poison}, {7, poison});
    one.allowed = {1, 0};
    one.mask_shape = {1, 1, 1, 2};
    CHECK_EQ(one.run().out, std::vector<float>{7});
    CHECK_EQ(one.run().weights, std::vector<float>{1, 0});
  }
  // The same bits whatever stands in the keys that causal hides, in every row that does not see
  // them.
  attention_case clean({1, 1, 1, 70, 140, 9, 9}, 9);
  clean.set_causal(0);
  attention_case dirty = clean;
  for (extent j = 40; j < 140; ++j) dirty.key[j * 9 + 3] = dirty.value[j * 9 + 8] = quiet_nan;
  const auto before = clean.run(), after = dirty.run();
  for (extent i = 0; i < 40 * 9; ++i) CHECK_EQ(after.out[i], before.out[i]);
  for (extent i = 0; i < 40 * 140; ++i) CHECK_EQ(after.weights[i], before.weights[i]);
  for (extent i = 40; i < 70; ++i) CHECK(std::isnan(after.out[i * 9 + 8]));
}

TEST_CASE("NaN in a visible input shows, and only where it is seen") {
  attention_case one({1, 1, 1, 20, 30, 4, 6}, 10);
  one.query[5 * 4] = quiet_nan;
  one.value[3 * 6 + 2] = quiet_nan;
  const auto made = one.run();
  for (extent i = 0; i < 20; ++i) {
    for (extent d = 0; d < 6; ++d) CHECK_EQ(std::isnan(made.out[i * 6 + d]), i == 5 || d == 2);
  }
  CHECK(std::isnan(scores_case({quiet_nan, 0}, {1, 2}).run().out[0]));
  CHECK(std::isnan(scores_case({std::numeric_limits<float>::infinity(), 0}, {1, 2}).run().out[0]));
  CHECK_EQ(scores_case({-std::numeric_limits<float>::infinity(), 0}, {1, 2}).run().weights,
           std::vector<float>{0, 1});
}

TEST_CASE("scores of any size do not overflow") {
  const auto large = scores_case({1e6f, 999000}, {1, 2}).run();
  CHECK_EQ(large.weights, std::vector<float>{1, 0});
  CHECK_EQ(large.log_sum_exp, std::vector<float>{1000000});
  const auto equal = scores_case({1000, 1000}, {1, 2}).run();
  CHECK_EQ(equal.weights, std::vector<float>{0.5, 0.5});
  CHECK_EQ(equal.log_sum_exp[0], doctest::Approx(1000.693147).epsilon(1e-7));
}

TEST_CASE("weights too small to count are exactly 0, so that nothing denormal slows a row") {
  for (float score : {-70.0f, -80.0f, -87.0f, -95.0f, -104.0f}) {
    CHECK_EQ(scores_case({0, score}, {1, 1}).run().weights, std::vector<float>{1, 0});
  }
  const auto shared = scores_case({0, 0, 0, -69, -68}, {1, 1, 1, 1, 1}).run();
  for (float weight : shared.weights) CHECK_EQ(std::fpclassify(weight), FP_NORMAL);
}

TEST_CASE("a long row of equal keys is the mean, to five digits") {
  const auto made = mean_of_values(1, std::vector<float>(65536, 0.1f)).run();
  CHECK_EQ(made.out[0], doctest::Approx(0.1).epsilon(1e-5));
  CHECK_EQ(made.weights[0], 1.0f / 65536);
}

TEST_CASE("a scale of 0 is 0") {
  attention_case one = scores_case({5, -5}, {1, 2});
  one.scale = 0;
  CHECK_EQ(one.run().weights, std::vector<float>{0.5, 0.5});
}

TEST_CASE("the same bits for any number of threads, in a batch or alone, with extras or without") {
  attention_case batch({3, 4, 2, 257, 190, 40, 24}, 11);
  batch.set_causal_bottom_right();
  const auto expected = batch.run(1);
  for (int threads : {2, 3, 8}) CHECK(batch.run(threads) == expected);
  CHECK_EQ(batch.run(1, false).out, expected.out);

  attention_case alone({1, 4, 2, 257, 190, 40, 24}, 0);
  alone.rules = batch.rules;
  const extent query_size = 4 * 257 * 40, key_size = 2 * 190 * 40, value_size = 2 * 190 * 24;
  alone.query.assign(&batch.query[query_size], &batch.query[2 * query_size]);
  alone.key.assign(&batch.key[key_size], &batch.key[2 * key_size]);
  alone.value.assign(&batch.value[value_size], &batch.value[2 * value_size]);
  const auto made = alone.run();
  CHECK(std::equal(made.out.begin(), made.out.end(), &expected.out[4 * 257 * 24]));
}

TEST_CASE("the same bits for any threads where they share out the keys of a few rows") {
  // One head, more tiles of keys than are held at once, grouped heads of two batches, several tiles
  // of queries, and pairs that each have to be looked at.
  const reference::attention_sizes all[] = {
      {1, 1, 1, 1, 12000, 64, 64}, {1, 1, 1, 3, 12000, 40, 20}, {2, 6, 2, 2, 1100, 64, 67},
      {1, 1, 1, 20, 1100, 20, 30}, {1, 1, 1, 300, 600, 20, 9},  {1, 1, 1, 4, 4000, 64, 0}};
  for (const auto& sizes : all) {
    CAPTURE(sizes.query_len);
    CAPTURE(sizes.key_len);
    attention_case one(sizes, 16);
    const std::int32_t lengths[] = {static_cast<std::int32_t>(sizes.key_len - 200), 513, 600};
    const std::vector<float> slopes(sizes.num_heads, 0.01f);
    if (sizes.batch > 1) one.rules.mask.key_lengths = lengths;
    one.set_causal_bottom_right();
    for (int turn = 0; turn < 3; ++turn) {
      if (turn == 1) one.rules.mask.window_left = sizes.key_len / 2;
      if (turn == 2) one.rules.alibi_slopes = slopes.data();
      CAPTURE(turn);
      const auto expected = one.run(1);
      for (int threads : {2, 3, 8}) {
        CHECK(one.run(threads) == expected);
        CHECK_EQ(one.run(threads, false).out, expected.out);
      }
    }
  }
}

TEST_CASE("permuting queries permutes rows, bit for bit") {
  const attention_case forward({1, 1, 1, 77, 50, 12, 7}, 12);
  attention_case backward = forward;
  for (extent i = 0; i < 77; ++i) {
    std::copy_n(&forward.query[i * 12], 12, &backward.query[(76 - i) * 12]);
  }
  const auto rows = forward.run().out, reversed = backward.run().out;
  for (extent i = 0; i < 77; ++i) {
    CHECK(std::equal(&rows[i * 7], &rows[i * 7] + 7, &reversed[(76 - i) * 7]));
  }
}

// Few queries, and those of heads that read the same keys, go other ways than many do.
TEST_CASE("a few queries have the bits that they have among others") {
  const extent lengths[] = {1, 3, 4, 9, 127, 128, 131, 300, 520}, dims[] = {1, 3, 4, 20, 64, 67};
  struct part {
    extent heads, queries;
  };
  const part parts[] = {{2, 1}, {1, 2}, {4, 1}, {1, 4}, {8, 1}, {1, 5}, {3, 2}, {1, 8}, {5, 7}};
  constexpr extent all = 11;
  extent turn = 0;
  for (extent key_len : lengths) {
    for (extent dim : dims) {
      const extent round = turn / std::size(parts);
      const auto [heads, queries] = parts[turn++ % std::size(parts)];
      CAPTURE(key_len);
      CAPTURE(dim);
      CAPTURE(heads);
      CAPTURE(queries);
      attention_case many({1, heads, 1, all, key_len, dim, dim % 9 + 30}, key_len * 100 + dim);
      const std::vector<float> sinks{0.5f, -1.0f, 2.0f, 0.0f, 1.0f, -2.0f, 0.1f, 3.0f};
      many.set_causal_bottom_right();
      if (round % 3 != 0) many.rules.mask.window_left = key_len / 2 + 1;
      many.rules.softcap = dim % 2 == 0 ? 3.0f : 0.0f;
      many.rules.sinks = dim == 64 ? sinks.data() : nullptr;
      const auto together = many.run();
      for (extent first = 0; first + queries <= all; ++first) {
        attention_case few = many;
        few.sizes.query_len = queries;
        few.rules.mask.query_offset += first;
        few.query.clear();
        for (extent head = 0; head < heads; ++head) {
          const float* row = many.query.data() + (head * all + first) * dim;
          few.query.insert(few.query.end(), row, row + queries * dim);
        }
        const auto made = few.run();
        const extent value_dim = many.sizes.value_dim;
        for (extent row = 0; row < heads * queries; ++row) {
          const extent among = row / queries * all + first + row % queries;
          CHECK(std::equal(made.out.begin() + row * value_dim,
                           made.out.begin() + (row + 1) * value_dim,
                           together.out.begin() + among * value_dim));
          CHECK_EQ(made.log_sum_exp[row], together.log_sum_exp[among]);
        }
      }
    }
  }
}

TEST_CASE("one query of each of several packed sequences, with grouped heads, is right") {
  attention_case one({1, 8, 2, 5, 700, 16, 12}, 15);
  const std::int32_t queries[] = {0, 1, 2, 3, 4, 5}, keys[] = {0, 10, 300, 300, 301, 700};
  one.rules.sequences = {5, queries, keys};
  one.check();
}

TEST_CASE("nothing to attend, nothing to compute") {
  const auto none = attention_case({1, 2, 2, 3, 0, 4, 5}, 1).run();
  CHECK_EQ(none.out, std::vector<float>(2 * 3 * 5, 0));
  CHECK_EQ(none.log_sum_exp, std::vector<float>(6, -std::numeric_limits<float>::infinity()));
  CHECK(attention_case({1, 2, 2, 0, 3, 4, 5}, 1).run().out.empty());
  CHECK(attention_case({0, 2, 2, 3, 3, 4, 5}, 1).run().out.empty());
  CHECK(attention_case({1, 2, 2, 3, 3, 4, 0}, 1).run().out.empty());
  attention_case({1, 1, 1, 3, 4, 0, 2}, 1).check();
}

TEST_CASE("no query heads on two key heads are nothing to attend") {
  float unused = 7;
  for (extent queries : {1, 3, 30}) {
    attention_inputs inputs = attention_case({1, 2, 2, queries, 3, 4, 4}, 1).inputs();
    inputs.query = view<const float, 4>::contiguous(&unused, {1, 0, queries, 4});
    inputs.key.data = inputs.value.data = &unused;
    attention_outputs outputs;
    outputs.out = view<float, 4>::contiguous(&unused, {1, 0, queries, 4});
    outputs.weights = view<float, 4>::contiguous(&unused, {1, 0, queries, 3});
    for (int threads : {1, 2}) {
      thread_pool pool(threads);
      scratch memory(attention_workspace_bytes(4, 4, pool.size()));
      CHECK_EQ(attention_forward(inputs, {}, outputs, memory, pool), status::ok);
    }
    CHECK_EQ(unused, 7);
  }
}

TEST_CASE("strides stand for layouts without a copy") {
  for (const auto& sizes : {reference::attention_sizes{2, 3, 3, 11, 13, 6, 6},
                            {2, 4, 1, 3, 300, 6, 6},
                            {2, 4, 1, 1, 300, 6, 6}}) {
    const attention_case one(sizes, 13);
    const auto expected = one.run();
    const auto& [batch, heads, kv_heads, queries, keys, dim, value_dim] = sizes;
    // (batch, length, heads, dim) memory of the same query.
    std::vector<float> swapped(one.query.size()), out(expected.out.size(), quiet_nan);
    const std::array<extent, 4> strides{queries * heads * dim, dim, heads * dim, 1};
    attention_inputs inputs = one.inputs();
    const view<float, 4> query{swapped.data(), inputs.query.shape, strides};
    const view<float, 4> swapped_out{out.data(), inputs.query.shape, strides};
    const auto for_each_element = [&, heads = heads, queries = queries,
                                   dim = dim](const auto& body) {
      for (extent i = 0; i < std::ssize(out); ++i) {
        const extent row = i / dim;
        body(row / queries / heads, row / queries % heads, row % queries, i % dim);
      }
    };
    for_each_element([&](auto... at) { query(at...) = inputs.query(at...); });
    inputs.query = query;
    thread_pool pool(1);
    scratch memory(attention_workspace_bytes(dim, value_dim, 1));
    attention_outputs outputs;
    outputs.out = swapped_out;
    REQUIRE_EQ(attention_forward(inputs, one.options(), outputs, memory, pool), status::ok);
    const auto contiguous =
        view<const float, 4>::contiguous(expected.out.data(), inputs.query.shape);
    for_each_element([&](auto... at) { CHECK_EQ(swapped_out(at...), contiguous(at...)); });
  }
}
