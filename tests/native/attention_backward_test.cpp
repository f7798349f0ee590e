// The gradients of attention: named cases here, mixes of options in
// attention_backward_property_test.cpp.
#include "support/cases.hpp"
#include "support/gradient_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

void fill_rows(std::vector<float>& rows, extent dim, extent row, float value) {
  std::fill_n(rows.begin() + row * dim, dim, value);
}

}  // namespace

TEST_CASE("gradients of attention at every length and dim") {
  for (extent query_len : lengths) {
    for (extent key_len : {extent{1}, extent{5}, query_len, extent{257}}) {
      check_backward(attention_case({1, 2, 1, query_len, key_len, 20, 12}, 3));
    }
  }
  for (extent head_dim : dims) {
    for (extent value_dim : dims) {
      check_backward(attention_case({1, 1, 1, 17, 33, head_dim, value_dim}, 4));
    }
  }
}

TEST_CASE("gradients of attention where scores are large") {
  check_backward(attention_case({2, 2, 2, 65, 65, 64, 64}, 5, 8));
}

TEST_CASE("what no query sees has gradients of 0 and changes no other, whatever it holds") {
  attention_case one({2, 4, 2, 6, 9, 5, 7}, 6);
  const std::int32_t lengths[] = {7, 4};
  one.rules.mask.key_lengths = lengths;
  const auto d_out = output_gradient(one);
  const auto clean = run_backward(one, d_out);
  for (float garbage : {quiet_nan, infinity, -infinity}) {
    attention_case dirty = one;
    for (extent kv_head = 0; kv_head < 4; ++kv_head) {
      for (extent key = lengths[kv_head / 2]; key < 9; ++key) {
        fill_rows(dirty.key, 5, kv_head * 9 + key, garbage);
        fill_rows(dirty.value, 7, kv_head * 9 + key, garbage);
      }
    }
    CHECK(run_backward(dirty, d_out) == clean);
  }
  for (extent d = 4 * 5; d < 9 * 5; ++d) CHECK_EQ(clean.d_key[3 * 9 * 5 + d], 0);
  for (extent d = 4 * 7; d < 9 * 7; ++d) CHECK_EQ(clean.d_value[3 * 9 * 7 + d], 0);
}

TEST_CASE("a query that sees no key has a gradient of 0 and changes no other, whatever it holds") {
  attention_case one({1, 2, 1, 3, 4, 5, 6}, 7);
  one.set_causal(-1);  // query 0 sees nothing
  const std::vector<float> sinks{0.5f, -1};
  one.rules.sinks = sinks.data();
  auto d_out = output_gradient(one);
  const auto clean = run_backward(one, d_out);
  for (extent head = 0; head < 2; ++head) {
    for (extent d = 0; d < 5; ++d) CHECK_EQ(clean.d_query[head * 3 * 5 + d], 0);
    fill_rows(one.query, 5, head * 3, quiet_nan);
    fill_rows(d_out, 6, head * 3, infinity);
  }
  CHECK(run_backward(one, d_out) == clean);
}

TEST_CASE("what is not finite shows where it is seen, and only there") {
  const auto finite = [](const std::vector<float>& rows, extent dim, extent row) {
    return std::all_of(rows.begin() + row * dim, rows.begin() + (row + 1) * dim,
                       [](float x) { return std::isfinite(x); });
  };
  attention_case one({1, 1, 1, 4, 4, 3, 2}, 8);
  one.set_causal(0);
  const auto d_out = output_gradient(one);
  for (std::vector<float>* tensor : {&one.query, &one.key, &one.value}) {
    const std::vector<float> kept = *tensor;
    // Key 2 is seen by queries 2 and 3, and query 2 sees keys 0 to 2.
    (*tensor)[2 * (tensor == &one.value ? 2 : 3)] = quiet_nan;
    const auto made = run_backward(one, d_out);
    for (extent row = 0; row < 2; ++row) CHECK(finite(made.d_query, 3, row));
    CHECK_FALSE(finite(made.d_query, 3, 2));
    CHECK_EQ(finite(made.d_query, 3, 3), tensor == &one.query);
    CHECK_FALSE(finite(made.d_key, 3, 0));
    CHECK_EQ(finite(made.d_key, 3, 3), tensor == &one.query);
    *tensor = kept;
  }
  auto bad_d_out = d_out;
  bad_d_out[2 * 2] = infinity;
  const auto made = run_backward(one, bad_d_out);
  CHECK(finite(made.d_value, 2, 3));
  CHECK_EQ(made.d_value[0], infinity);
  CHECK(std::isfinite(made.d_value[1]));
  CHECK_FALSE(finite(made.d_query, 3, 2));
  CHECK(finite(made.d_query, 3, 3));
}

TEST_CASE("a batch's gradients have the same bits alone and among others") {
  attention_case both({2, 2, 1, 140, 300, 8, 12}, 9), alone = both;
  both.rules.softcap = alone.rules.softcap = 3;
  alone.sizes.batch = 1;
  for (std::vector<float>* tensor : {&alone.query, &alone.key, &alone.value}) {
    tensor->resize(tensor->size() / 2);
  }
  const auto d_out = output_gradient(both);
  const auto made = run_backward(both, d_out);
  const auto one = run_backward(alone, {d_out.begin(), d_out.begin() + d_out.size() / 2});
  CHECK(std::equal(one.d_query.begin(), one.d_query.end(), made.d_query.begin()));
  CHECK(std::equal(one.d_key.begin(), one.d_key.end(), made.d_key.begin()));
  CHECK(std::equal(one.d_value.begin(), one.d_value.end(), made.d_value.begin()));
}

TEST_CASE("lengths of 0 have empty gradients, or gradients of 0") {
  for (const attention_sizes& sizes : {attention_sizes{1, 1, 1, 0, 3, 2, 2},
                                       {1, 1, 1, 3, 0, 2, 2},
                                       {0, 1, 1, 3, 3, 2, 2},
                                       {1, 0, 0, 3, 3, 2, 2},
                                       {1, 1, 1, 3, 3, 0, 2},
                                       {1, 1, 1, 3, 3, 2, 0}}) {
    check_backward(attention_case(sizes, 10));
  }
}

TEST_CASE(
    "a bias that is broadcast along every axis has a gradient even where there are no scores") {
  const float bias = 1;
  attention_case one({1, 1, 1, 0, 3, 2, 2}, 11);
  one.rules.bias = {&bias, {1, 1, 0, 3}, {}};
  CHECK_EQ(run_backward(one, {}).d_bias, std::vector<float>{0});
}

TEST_CASE("gradients of heads that lie within the rows of a projection") {
  // (batch, length, heads * dim), as they leave a linear layer.
  const attention_case one({1, 2, 2, 5, 5, 3, 4}, 12);
  const auto d_out = output_gradient(one);
  const auto apart = run_backward(one, d_out);
  const auto rows_first = [](std::vector<float>& data, extent dim) {
    return view<float, 4>{data.data(), {1, 2, 5, dim}, {0, dim, 2 * dim, 1}};
  };
  const auto copy = [&](const std::vector<float>& from, std::vector<float>& to, extent dim) {
    const auto wanted = rows_first(to, dim);
    for (extent h = 0; h < 2; ++h)
      for (extent i = 0; i < 5; ++i) std::copy_n(&from[(h * 5 + i) * dim], dim, wanted.at(0, h, i));
  };
  std::vector<float> query(30), key(30), value(40), d_rows(40), d_query(30), d_key(30), d_value(40);
  copy(one.query, query, 3);
  copy(one.key, key, 3);
  copy(one.value, value, 4);
  copy(d_out, d_rows, 4);
  const attention_inputs inputs{rows_first(query, 3), rows_first(key, 3), rows_first(value, 4)};
  const attention_gradients to{
      rows_first(d_query, 3), rows_first(d_key, 3), rows_first(d_value, 4), {}};
  thread_pool pool(1);
  scratch memory(attention_backward_workspace_bytes(inputs, 1));
  REQUIRE_EQ(attention_backward(rows_first(d_rows, 4), inputs, one.options(), to, memory, pool),
             status::ok);
  std::vector<float> expected(40);
  copy(apart.d_value, expected, 4);
  CHECK_EQ(d_value, expected);
  expected.resize(30);
  copy(apart.d_query, expected, 3);
  CHECK_EQ(d_query, expected);
  copy(apart.d_key, expected, 3);
  CHECK_EQ(d_key, expected);
}
