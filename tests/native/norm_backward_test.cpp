#include "qkv/norm.hpp"
#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

struct norm_case {
  extent rows, columns;
  std::vector<float> x, gamma, d_out;  // no gamma where empty
  float epsilon = 1e-5f;

  norm_case(extent rows, extent columns, std::uint64_t seed, double scale = 1.0)
      : rows(rows), columns(columns) {
    number_source numbers(seed);
    x = numbers.floats(rows * columns, scale);
    gamma = numbers.floats(columns);
    d_out = numbers.floats(rows * columns);
  }

  view<const float, 2> at(const std::vector<float>& data) const {
    return view<const float, 2>::contiguous(data.data(), {rows, columns});
  }

  reference::norm_gradients<float> run(bool has_mean, int threads = 1,
                                       bool columns_too = true) const {
    reference::norm_gradients<float> made{std::vector<float>(x.size(), quiet_nan),
                                          std::vector<float>(columns, quiet_nan),
                                          std::vector<float>(has_mean ? columns : 0, quiet_nan)};
    norm_gradients to{view<float, 2>::contiguous(made.d_x.data(), {rows, columns})};
    if (columns_too) {
      to.d_gamma = made.d_gamma.data();
      to.d_beta = made.d_beta.data();
    }
    thread_pool pool(threads);
    scratch memory(norm_backward_workspace_bytes(rows, columns));
    const float* scale = gamma.empty() ? nullptr : gamma.data();
    const auto backward = has_mean ? layer_norm_backward : rms_norm_backward;
    REQUIRE_EQ(backward(at(d_out), at(x), scale, epsilon, to, memory, pool), status::ok);
    return made;
  }

  template <typename T>
  reference::norm_gradients<T> reference(bool has_mean) const {
    const std::vector<T> values(x.begin(), x.end()), scale(gamma.begin(), gamma.end()),
        gradients(d_out.begin(), d_out.end());
    return has_mean ? reference::layer_norm_backward<T>(gradients, values, scale, epsilon, columns)
                    : reference::rms_norm_backward<T>(gradients, values, scale, epsilon, columns);
  }

  // The plain loop over the columns from last to first: the same sums, rounded in another way.
  reference::norm_gradients<float> reversed(bool has_mean) const {
    norm_case backwards = *this;
    for (auto* data : {&backwards.x, &backwards.gamma, &backwards.d_out}) {
      reverse_rows(*data, columns);
    }
    auto made = backwards.reference<float>(has_mean);
    for (auto* data : {&made.d_x, &made.d_gamma, &made.d_beta}) reverse_rows(*data, columns);
    return made;
  }

  void check() const {
    for (bool has_mean : {true, false}) {
      CAPTURE(rows);
      CAPTURE(columns);
      CAPTURE(has_mean);
      const auto made = run(has_mean), plain = reference<float>(has_mean),
                 other = reversed(has_mean);
      const auto exact = reference<double>(has_mean);
      check_near(made.d_x, {plain.d_x, other.d_x}, exact.d_x);
      check_near(made.d_gamma, {plain.d_gamma, other.d_gamma}, exact.d_gamma);
      check_near(made.d_beta, {plain.d_beta, other.d_beta}, exact.d_beta);
    }
  }
};

}  // namespace

TEST_CASE("the norms' gradients are right over rows and columns, with gamma or without") {
  for (extent rows : {1, 3, 64, 65, 200}) {
    for (extent columns : {2, 3, 4, 5, 13, 64, 65, 511, 513}) {
      norm_case one(rows, columns, 1);
      one.check();
      one.gamma.clear();
      one.check();
    }
  }
}

TEST_CASE("the norms' gradients of large and of tiny numbers") {
  norm_case(5, 65, 2, 1e4).check();
  norm_case(5, 65, 3, 3e-3).check();
  norm_case(5, 65, 4, 1e-6).check();
  norm_case one(5, 65, 5);
  one.epsilon = 0.1f;
  one.check();
}

TEST_CASE("the norms' gradients of a known row") {
  norm_case one(1, 4, 0);
  one.x = {1, 2, 3, 4};
  one.gamma = {1, 1, 2, 1};
  one.d_out = {1, 0, 1, 0};
  one.epsilon = 0;
  // g = (1, 0, 2, 0), root = sqrt(1.25), scaled = (-1.5, -0.5, 0.5, 1.5) / root.
  auto made = one.run(true);
  CHECK_LE(largest_error(made.d_x, {0.0894427191, -0.7155417528, 1.1627553483, -0.5366563146}),
           3e-7);
  CHECK_LE(largest_error(made.d_gamma, {-1.3416407865, 0, 0.4472135955, 0}), 3e-7);
  CHECK_EQ(made.d_beta, std::vector<float>{1, 0, 1, 0});
  // root = sqrt(7.5), the mean of g * scaled is 7 / 4 / root.
  made = one.run(false);
  CHECK_LE(largest_error(made.d_x, {0.2799470849, -0.1704025734, 0.4746928832, -0.3408051469}),
           3e-7);
}

TEST_CASE("the norms' gradients have the same bits for any number of threads, and in place") {
  const norm_case one(200, 130, 6);
  for (bool has_mean : {true, false}) {
    const auto expected = one.run(has_mean);
    for (int threads : {2, 3, 8}) {
      const auto made = one.run(has_mean, threads);
      CHECK_EQ(made.d_x, expected.d_x);
      CHECK_EQ(made.d_gamma, expected.d_gamma);
      CHECK_EQ(made.d_beta, expected.d_beta);
    }
    CHECK_EQ(one.run(has_mean, 1, false).d_x, expected.d_x);
    auto d_out = one.d_out;
    thread_pool pool(1);
    scratch memory(norm_backward_workspace_bytes(200, 130));
    const auto backward = has_mean ? layer_norm_backward : rms_norm_backward;
    const auto in_place = view<float, 2>::contiguous(d_out.data(), {200, 130});
    REQUIRE_EQ(
        backward(in_place, one.at(one.x), one.gamma.data(), one.epsilon, {in_place}, memory, pool),
        status::ok);
    CHECK_EQ(d_out, expected.d_x);
  }
}

TEST_CASE("NaN stays in its row of the norms' d_x, and in its column of their sums") {
  for (bool has_mean : {true, false}) {
    norm_case one(3, 6, 8);
    const auto clean = one.run(has_mean);
    one.d_out[6 + 2] = quiet_nan;
    const auto made = one.run(has_mean);
    for (extent i = 0; i < 18; ++i) {
      if (i / 6 == 1)
        CHECK(std::isnan(made.d_x[i]));
      else
        CHECK_EQ(made.d_x[i], clean.d_x[i]);
    }
    for (extent j = 0; j < 6; ++j) {
      if (j == 2)
        CHECK(std::isnan(made.d_gamma[j]));
      else
        CHECK_EQ(made.d_gamma[j], clean.d_gamma[j]);
    }
  }
}

TEST_CASE("the norms' gradients take axes of length 0 and refuse what does not fit") {
  for (bool has_mean : {true, false}) {
    CHECK_EQ(norm_case(0, 5, 1).run(has_mean).d_gamma, std::vector<float>(5, 0));
    CHECK(norm_case(5, 0, 1).run(has_mean).d_x.empty());
  }
  std::vector<float> x(12, 1), d_out(12, 1), d_x(12, -1);
  const auto rows = [](std::vector<float>& data, extent count, extent columns) {
    return view<float, 2>::contiguous(data.data(), {count, columns});
  };
  const auto refuses = [&](view<const float, 2> out, view<const float, 2> from, view<float, 2> to,
                           float epsilon, status expected, std::size_t missing = 0) {
    thread_pool pool(1);
    scratch memory(norm_backward_workspace_bytes(3, 4) - missing);
    for (const auto backward : {layer_norm_backward, rms_norm_backward}) {
      CHECK_EQ(backward(out, from, nullptr, epsilon, {to}, memory, pool), expected);
    }
  };
  const auto mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refuses(rows(d_out, 4, 3), rows(x, 3, 4), rows(d_x, 3, 4), 1, mismatch);
  refuses(rows(d_out, 3, 4), rows(x, 3, 4), rows(d_x, 4, 3), 1, mismatch);
  refuses({d_out.data(), {3, 4}, {1, 3}}, rows(x, 3, 4), rows(d_x, 3, 4), 1, invalid);
  refuses(rows(d_out, 3, 4), {x.data(), {3, 4}, {1, 3}}, rows(d_x, 3, 4), 1, invalid);
  refuses(rows(d_out, 3, 4), rows(x, 3, 4), {d_x.data(), {3, 4}, {1, 3}}, 1, invalid);
  refuses(rows(d_out, 3, 4), rows(x, 3, 4), rows(d_x, 3, 4), -1, invalid);
  refuses(rows(d_out, 3, 4), rows(x, 3, 4), rows(d_x, 3, 4), quiet_nan, invalid);
  refuses(rows(d_out, 3, 4), rows(x, 3, 4), rows(d_x, 3, 4), 1, status::out_of_memory, 128);
  CHECK_EQ(d_x, std::vector<float>(12, -1));
}
