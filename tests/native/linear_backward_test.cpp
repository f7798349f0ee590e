#include "qkv/linear.hpp"
#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

struct linear_case {
  extent rows, in_dim, out_dim;
  std::vector<float> x, weight, d_out;

  linear_case(extent rows, extent in_dim, extent out_dim, std::uint64_t seed)
      : rows(rows), in_dim(in_dim), out_dim(out_dim) {
    number_source numbers(seed);
    x = numbers.floats(rows * in_dim);
    weight = numbers.floats(in_dim * out_dim);
    d_out = numbers.floats(rows * out_dim);
  }

  // Which gradients to make, by name.
  reference::linear_gradients<float> run(int threads = 1, bool d_x = true, bool d_weight = true,
                                         bool d_bias = true) const {
    reference::linear_gradients<float> made{std::vector<float>(x.size(), quiet_nan),
                                            std::vector<float>(weight.size(), quiet_nan),
                                            std::vector<float>(out_dim, quiet_nan)};
    linear_gradients to;
    if (d_x) to.d_x = view<float, 2>::contiguous(made.d_x.data(), {rows, in_dim});
    if (d_weight) to.d_weight = view<float, 2>::contiguous(made.d_weight.data(), {in_dim, out_dim});
    if (d_bias) to.d_bias = made.d_bias.data();
    thread_pool pool(threads);
    scratch memory(linear_backward_workspace_bytes(rows, in_dim, out_dim, pool.size()));
    REQUIRE_EQ(linear_backward(view<const float, 2>::contiguous(d_out.data(), {rows, out_dim}),
                               view<const float, 2>::contiguous(x.data(), {rows, in_dim}),
                               view<const float, 2>::contiguous(weight.data(), {in_dim, out_dim}),
                               to, memory, pool),
               status::ok);
    return made;
  }

  // The rows in the other order: sums over them are the same, but for their rounding.
  linear_case upside_down() const {
    linear_case turned = *this;
    for (extent r = 0; r < rows; ++r) {
      std::copy_n(&x[r * in_dim], in_dim, &turned.x[(rows - 1 - r) * in_dim]);
      std::copy_n(&d_out[r * out_dim], out_dim, &turned.d_out[(rows - 1 - r) * out_dim]);
    }
    return turned;
  }

  template <typename T>
  reference::linear_gradients<T> reference() const {
    return reference::linear_backward<T>({d_out.begin(), d_out.end()}, {x.begin(), x.end()},
                                         {weight.begin(), weight.end()}, rows, in_dim, out_dim);
  }
};

void check_right(extent rows, extent in_dim, extent out_dim) {
  CAPTURE(rows);
  CAPTURE(in_dim);
  CAPTURE(out_dim);
  const linear_case one(rows, in_dim, out_dim, 1);
  const auto made = one.run();
  const auto plain = one.reference<float>(), other = one.upside_down().reference<float>();
  const auto exact = one.reference<double>();
  check_near(made.d_x, plain.d_x, exact.d_x);
  check_near(made.d_weight, {plain.d_weight, other.d_weight}, exact.d_weight);
  check_near(made.d_bias, {plain.d_bias, other.d_bias}, exact.d_bias);
}

}  // namespace

TEST_CASE("linear_backward is right over rows and dims") {
  for (extent rows : {1, 2, 3, 17, 64, 257, 600}) {
    for (extent in_dim : {1, 4, 5, 65, 130}) {
      for (extent out_dim : {1, 8, 9, 77}) check_right(rows, in_dim, out_dim);
    }
  }
}

TEST_CASE("linear_backward is right over more columns than a task has") {
  check_right(3, 600, 20);
  check_right(5, 70, 600);
}

TEST_CASE("linear_backward has the same bits for any number of threads and of gradients") {
  for (const auto& [rows, in_dim, out_dim] :
       {std::array<extent, 3>{300, 150, 300}, {70, 20, 600}}) {
    const linear_case one(rows, in_dim, out_dim, 2);
    const auto expected = one.run();
    for (int threads : {2, 3, 8}) {
      const auto made = one.run(threads);
      CHECK_EQ(made.d_x, expected.d_x);
      CHECK_EQ(made.d_weight, expected.d_weight);
      CHECK_EQ(made.d_bias, expected.d_bias);
    }
    CHECK_EQ(one.run(1, true, false, false).d_x, expected.d_x);
    CHECK_EQ(one.run(1, false, true, false).d_weight, expected.d_weight);
    CHECK_EQ(one.run(1, false, false, true).d_bias, expected.d_bias);
  }
}

TEST_CASE("a row's d_x has the same bits whatever rows are beside it") {
  const linear_case all(130, 70, 90, 3);
  const auto expected = all.run();
  for (extent row : {0, 63, 129}) {
    linear_case one = all;
    one.rows = 1;
    one.x.assign(&all.x[row * 70], &all.x[row * 70] + 70);
    one.d_out.assign(&all.d_out[row * 90], &all.d_out[row * 90] + 90);
    CHECK(std::equal(&expected.d_x[row * 70], &expected.d_x[row * 70] + 70, one.run().d_x.data()));
  }
}

TEST_CASE("linear_backward takes axes of length 0") {
  auto made = linear_case(0, 3, 2, 4).run();
  CHECK_EQ(made.d_weight, std::vector<float>(6, 0));
  CHECK_EQ(made.d_bias, std::vector<float>(2, 0));
  made = linear_case(2, 0, 2, 4).run();
  CHECK_EQ(made.d_bias.size(), 2);
  CHECK_FALSE(std::isnan(made.d_bias[0]));
  CHECK_EQ(linear_case(2, 3, 0, 4).run().d_x, std::vector<float>(6, 0));
}

TEST_CASE("linear_backward between rows that lie apart") {
  const linear_case one(5, 6, 7, 5);
  const auto expected = one.run();
  const auto apart = [](const std::vector<float>& from, extent rows, extent columns) {
    std::vector<float> to(rows * 10, quiet_nan);
    for (extent r = 0; r < rows; ++r) std::copy_n(&from[r * columns], columns, &to[r * 10]);
    return to;
  };
  const auto x = apart(one.x, 5, 6), weight = apart(one.weight, 6, 7),
             d_out = apart(one.d_out, 5, 7);
  std::vector<float> d_x(5 * 10, -1), d_weight(6 * 10, -1);
  thread_pool pool(1);
  scratch memory(linear_backward_workspace_bytes(5, 6, 7, 1));
  REQUIRE_EQ(linear_backward({d_out.data(), {5, 7}, {10, 1}}, {x.data(), {5, 6}, {10, 1}},
                             {weight.data(), {6, 7}, {10, 1}},
                             {{d_x.data(), {5, 6}, {10, 1}}, {d_weight.data(), {6, 7}, {10, 1}}},
                             memory, pool),
             status::ok);
  for (extent r = 0; r < 5; ++r)
    CHECK(std::equal(&d_x[r * 10], &d_x[r * 10] + 6, &expected.d_x[r * 6]));
  for (extent r = 0; r < 6; ++r) {
    CHECK(std::equal(&d_weight[r * 10], &d_weight[r * 10] + 7, &expected.d_weight[r * 7]));
    CHECK_EQ(d_weight[r * 10 + 7], -1);
  }
}

TEST_CASE("linear_backward refuses what does not fit, and writes nothing then") {
  std::vector<float> x(6), weight(6), d_out(4), d_x(6, -1), d_weight(6, -1);
  const auto rows = [](std::vector<float>& data, extent count, extent columns) {
    return view<float, 2>::contiguous(data.data(), {count, columns});
  };
  const auto refuses = [&](view<const float, 2> out, view<const float, 2> from,
                           view<const float, 2> by, linear_gradients to, status expected,
                           std::size_t missing = 0) {
    thread_pool pool(1);
    scratch memory(linear_backward_workspace_bytes(2, 3, 2, 1) - missing);
    CHECK_EQ(linear_backward(out, from, by, to, memory, pool), expected);
  };
  const linear_gradients to{rows(d_x, 2, 3), rows(d_weight, 3, 2)};
  const auto mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), rows(weight, 2, 3), to, mismatch);
  refuses(rows(d_out, 1, 2), rows(x, 2, 3), rows(weight, 3, 2), to, mismatch);
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), rows(weight, 3, 2), {rows(d_x, 3, 2)}, mismatch);
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), rows(weight, 3, 2), {{}, rows(d_weight, 2, 3)},
          mismatch);
  refuses({d_out.data(), {2, 2}, {1, 2}}, rows(x, 2, 3), rows(weight, 3, 2), to, invalid);
  refuses(rows(d_out, 2, 2), {x.data(), {2, 3}, {1, 2}}, rows(weight, 3, 2), to, invalid);
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), {weight.data(), {3, 2}, {1, 3}}, to, invalid);
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), rows(weight, 3, 2), {{d_x.data(), {2, 3}, {1, 2}}},
          invalid);
  refuses(rows(d_out, 2, 2), rows(x, 2, 3), rows(weight, 3, 2), to, status::out_of_memory, 4096);
  CHECK_EQ(d_x, std::vector<float>(6, -1));
  CHECK_EQ(d_weight, std::vector<float>(6, -1));
}
