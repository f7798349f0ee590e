#include "qkv/rotary.hpp"

#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr rotary_pairing pairings[] = {rotary_pairing::halves, rotary_pairing::neighbours};

struct tables {
  std::vector<float> cosines, sines;
  bool operator==(const tables&) const = default;
};

tables tables_of(const std::vector<double>& positions, double base, extent dims, int threads = 1) {
  const std::array<extent, 2> shape{static_cast<extent>(positions.size()), dims / 2};
  tables made{std::vector<float>(shape[0] * shape[1], quiet_nan),
              std::vector<float>(shape[0] * shape[1], quiet_nan)};
  thread_pool pool(threads);
  REQUIRE_EQ(
      rotary_tables(positions.data(), base, view<float, 2>::contiguous(made.cosines.data(), shape),
                    view<float, 2>::contiguous(made.sines.data(), shape), pool),
      status::ok);
  return made;
}

// batch 2, heads 3 of (length, dim), of which `dims` turn.
struct rotary_case {
  extent length, dim, dims;
  std::vector<float> x;
  std::vector<double> positions;

  rotary_case(extent length, extent dim, extent dims) : length(length), dim(dim), dims(dims) {
    number_source numbers(static_cast<std::uint64_t>(100 * length + dim));
    x = numbers.floats(6 * length * dim);
    for (extent t = 0; t < length; ++t) positions.push_back(static_cast<double>(7 * t % 50));
  }

  std::array<extent, 4> shape() const { return {2, 3, length, dim}; }

  rotary_angles angles(const tables& from) const {
    const std::array<extent, 2> shape{length, dims / 2};
    return {view<const float, 2>::contiguous(from.cosines.data(), shape),
            view<const float, 2>::contiguous(from.sines.data(), shape)};
  }

  std::vector<float> run(rotary_pairing pairing, int threads = 1) const {
    std::vector<float> out(x.size(), quiet_nan);
    const tables made = tables_of(positions, 10000, dims);
    thread_pool pool(threads);
    REQUIRE_EQ(rotary_forward(view<const float, 4>::contiguous(x.data(), shape()), angles(made),
                              pairing, view<float, 4>::contiguous(out.data(), shape()), pool),
               status::ok);
    return out;
  }

  template <typename T>
  std::vector<T> reference(rotary_pairing pairing) const {
    std::vector<T> out(x.begin(), x.end());
    for (extent row = 0; row < 6 * length; ++row) {
      std::vector<T> turns;
      for (extent i = 0; i < dims / 2; ++i) {
        turns.push_back(
            static_cast<T>(positions[row % length] * std::pow(10000.0, -2.0 * i / dims)));
      }
      reference::rotate_row(&out[row * dim], turns, pairing == rotary_pairing::neighbours);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("rotary pairs halves or neighbours") {
  rotary_case one(1, 4, 4);
  one.positions = {1};
  one.x.clear();
  for (int repeat = 0; repeat < 6; ++repeat) one.x.insert(one.x.end(), {1, 2, 3, 4});
  const auto head = [&](rotary_pairing pairing) {
    const auto made = one.run(pairing);
    return std::vector<float>(made.begin(), made.begin() + 4);
  };
  CHECK_LE(largest_error(head(rotary_pairing::neighbours), {-1.142640, 1.922076, 2.959851, 4.0298}),
           1e-6);
  CHECK_LE(largest_error(head(rotary_pairing::halves), {-1.984111, 1.959901, 2.462378, 4.0198}),
           1e-6);
}

TEST_CASE("rotary is right over lengths and dims, and copies the dims that do not turn") {
  for (extent length : {1, 31, 32, 33, 70}) {
    for (const auto& [dim, dims] : {std::pair<extent, extent>{2, 2},
                                    {6, 6},
                                    {64, 64},
                                    {130, 130},
                                    {20, 10},
                                    {5, 4},
                                    {7, 0}}) {
      const rotary_case one(length, dim, dims);
      CAPTURE(dim);
      CAPTURE(dims);
      for (rotary_pairing pairing : pairings) {
        const auto made = one.run(pairing);
        check_near(made, one.reference<float>(pairing), one.reference<double>(pairing));
        for (std::size_t i = 0; i < made.size(); ++i) {
          if (static_cast<extent>(i) % dim >= dims) CHECK_EQ(made[i], one.x[i]);
        }
      }
    }
  }
}

TEST_CASE("rotary over strides, in place and with table rows by position") {
  // (batch, length, heads, dim) with gaps, as projections lie.
  const rotary_case one(9, 8, 6);
  for (rotary_pairing pairing : pairings) {
    const auto expected = one.run(pairing);
    std::vector<float> data(2 * 9 * 40, -1);
    const view<float, 4> strided{data.data(), one.shape(), {9 * 40, 10, 40, 1}};
    const auto element = [&](extent i) -> float& {
      return strided(i / (3 * 9 * 8), i / (9 * 8) % 3, i / 8 % 9, i % 8);
    };
    for (std::size_t i = 0; i < one.x.size(); ++i) element(static_cast<extent>(i)) = one.x[i];
    // Tables of all positions, looked up.
    std::vector<double> all(50);
    for (int t = 0; t < 50; ++t) all[t] = t;
    const tables made = tables_of(all, 10000, 6);
    const std::vector<std::int32_t> rows(one.positions.begin(), one.positions.end());
    const rotary_angles angles{view<const float, 2>::contiguous(made.cosines.data(), {50, 3}),
                               view<const float, 2>::contiguous(made.sines.data(), {50, 3}),
                               rows.data()};
    thread_pool pool(1);
    REQUIRE_EQ(rotary_forward(strided, angles, pairing, strided, pool), status::ok);
    for (std::size_t i = 0; i < one.x.size(); ++i)
      CHECK_EQ(element(static_cast<extent>(i)), expected[i]);
    CHECK_EQ(std::count(data.begin(), data.end(), -1.0f), 2 * 9 * (40 - 24));
  }
}

TEST_CASE("rotary and its tables have the same bits for any number of threads") {
  const rotary_case one(150, 24, 20);
  const tables expected = tables_of(one.positions, 10000, 20);
  for (int threads : {2, 3, 8}) {
    CHECK(tables_of(one.positions, 10000, 20, threads) == expected);
    for (rotary_pairing pairing : pairings) CHECK_EQ(one.run(pairing, threads), one.run(pairing));
  }
}

TEST_CASE("rotary tables are the rounded cosines and sines, near and far") {
  const std::vector<double> positions{0, 1, -1, 0.25, 31, 4095, 1e6, -1e6, 0x1p30, -0x1p30};
  const double unit = std::numeric_limits<float>::epsilon() / 2;
  for (double base : {1.0, 1.5, 100.0, 10000.0, 5e5, 1e300}) {
    for (extent dims : {2, 6, 64, 128}) {
      const tables made = tables_of(positions, base, dims);
      for (std::size_t k = 0; k < made.sines.size(); ++k) {
        const double position = positions[k / (dims / 2)];
        const double angle = position * std::pow(base, -2.0 * (k % (dims / 2)) / dims);
        // Half a unit of the result, and a few of the angle in double.
        const double allowed = unit + 0x1p-50 * std::abs(angle) + 0x1p-52 * std::abs(position);
        CHECK_LE(std::abs(made.sines[k] - std::sin(angle)), allowed);
        CHECK_LE(std::abs(made.cosines[k] - std::cos(angle)), allowed);
      }
    }
  }
}

TEST_CASE("rotary refuses what does not fit, and writes nothing then") {
  const rotary_case one(3, 6, 4);
  const tables made = tables_of(one.positions, 10000, 4);
  std::vector<float> out(one.x.size(), -1);
  const auto from = view<const float, 4>::contiguous(one.x.data(), one.shape());
  const auto to = view<float, 4>::contiguous(out.data(), one.shape());
  thread_pool pool(1);
  const auto rotary = [&](view<const float, 4> x, const rotary_angles& angles, view<float, 4> y) {
    return rotary_forward(x, angles, rotary_pairing::halves, y, pool);
  };
  const rotary_angles angles = one.angles(made);
  rotary_angles changed = angles;
  changed.sines.shape[1] = 1;
  CHECK_EQ(rotary(from, changed, to), status::shape_mismatch);
  changed.cosines.shape = changed.sines.shape = {2, 2};
  CHECK_EQ(rotary(from, changed, to), status::shape_mismatch);
  changed.cosines.shape = changed.sines.shape = {3, 4};
  CHECK_EQ(rotary(from, changed, to), status::shape_mismatch);
  changed = angles;
  for (std::int32_t wrong : {-1, 3}) {
    const std::vector<std::int32_t> rows{0, 1, wrong};
    changed.rows = rows.data();
    CHECK_EQ(rotary(from, changed, to), status::invalid_argument);
  }
  changed = angles;
  changed.cosines.strides = {1, 3};
  CHECK_EQ(rotary(from, changed, to), status::invalid_argument);
  view<float, 4> other = to;
  other.shape[2] = 2;
  CHECK_EQ(rotary(from, angles, other), status::shape_mismatch);
  other = to;
  other.strides = {54, 18, 1, 3};
  CHECK_EQ(rotary(from, angles, other), status::invalid_argument);
  CHECK_EQ(out, std::vector<float>(one.x.size(), -1));
}

TEST_CASE("rotary tables refuse positions and bases that are none") {
  std::vector<float> cosines(2, -1), sines(2, -1);
  const auto refused = [&](double position, double base, extent rows = 1) {
    thread_pool pool(1);
    return rotary_tables(&position, base, view<float, 2>::contiguous(cosines.data(), {1, 2}),
                         view<float, 2>::contiguous(sines.data(), {rows, 2}), pool);
  };
  const double infinite = std::numeric_limits<double>::infinity();
  for (double position : {0x1p31, -0x1p31, infinite, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_EQ(refused(position, 10000), status::invalid_argument);
  }
  for (double base : {0.5, 0.0, -2.0, infinite, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_EQ(refused(1, base), status::invalid_argument);
  }
  CHECK_EQ(refused(1, 10000, 0), status::shape_mismatch);
  CHECK_EQ(cosines, std::vector<float>(2, -1));
  CHECK_EQ(sines, std::vector<float>(2, -1));
}

TEST_CASE("rotary takes axes of length 0") {
  for (rotary_pairing pairing : pairings) {
    CHECK(rotary_case(0, 8, 8).run(pairing).empty());
    CHECK(rotary_case(5, 0, 0).run(pairing).empty());
  }
}

TEST_CASE("rotary_backward is right over lengths and dims, for any number of threads, in place") {
  for (extent length : {1, 33, 70}) {
    for (const auto& [dim, dims] :
         {std::pair<extent, extent>{2, 2}, {64, 64}, {20, 10}, {5, 4}, {7, 0}}) {
      const rotary_case one(length, dim, dims);
      const tables made = tables_of(one.positions, 10000, dims);
      for (rotary_pairing pairing : pairings) {
        std::vector<float> plain = one.x;
        std::vector<double> exact = to_double(one.x);
        for (extent row = 0; row < 6 * length; ++row) {
          std::vector<double> turns;
          for (extent i = 0; i < dims / 2; ++i) {
            turns.push_back(one.positions[row % length] * std::pow(10000.0, -2.0 * i / dims));
          }
          const bool neighbours = pairing == rotary_pairing::neighbours;
          reference::rotate_row_backward(&exact[row * dim], turns, neighbours);
          reference::rotate_row_backward(&plain[row * dim], {turns.begin(), turns.end()},
                                         neighbours);
        }
        std::vector<float> expected;
        for (int threads : {1, 2, 8}) {
          std::vector<float> d_x = one.x;
          const auto in_place = view<float, 4>::contiguous(d_x.data(), one.shape());
          thread_pool pool(threads);
          REQUIRE_EQ(rotary_backward(in_place, one.angles(made), pairing, in_place, pool),
                     status::ok);
          if (threads == 1) expected = d_x;
          CHECK_EQ(d_x, expected);
        }
        check_near(expected, plain, exact);
      }
    }
  }
}

TEST_CASE("rotary_backward refuses what rotary refuses") {
  const rotary_case one(3, 6, 4);
  const tables made = tables_of(one.positions, 10000, 4);
  std::vector<float> d_x(one.x.size(), -1);
  auto to = view<float, 4>::contiguous(d_x.data(), one.shape());
  to.shape[2] = 2;
  thread_pool pool(1);
  CHECK_EQ(rotary_backward(view<const float, 4>::contiguous(one.x.data(), one.shape()),
                           one.angles(made), rotary_pairing::halves, to, pool),
           status::shape_mismatch);
  CHECK_EQ(d_x, std::vector<float>(one.x.size(), -1));
}
