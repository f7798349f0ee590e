#include "kernels/gemm.hpp"

#include "qkv/reference.hpp"
#include "support/near.hpp"
#include "support/random.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float untouched = 42.0f;

struct product {
  extent rows, depth, columns;
  std::vector<float> a, b;

  product(extent rows, extent depth, extent columns, std::uint64_t seed)
      : rows(rows), depth(depth), columns(columns) {
    number_source numbers(seed);
    a = numbers.floats(rows * depth);
    b = numbers.floats(depth * columns);
  }

  // c lies in rows of `stride`, with a margin that must stay as it is.
  std::vector<float> run(kernels::write mode, extent stride) const {
    std::vector<float> packed(depth * kernels::padded(columns, kernels::column_panel));
    std::vector<float> scratch(kernels::gemm_scratch), c(rows * stride, untouched);
    kernels::pack_columns(b.data(), columns, depth, columns, packed.data());
    kernels::gemm({a.data(), rows, depth}, packed.data(), depth, columns, {c.data(), stride}, mode,
                  scratch.data());
    return c;
  }
};

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace

TEST_CASE("gemm is right at every size around a tile and touches nothing else") {
  for (extent depth : {1, 2, 17, 255, 256, 257, 600}) {
    // All sizes of a depth in one comparison: a single sum of the plain loop may be right by luck.
    std::vector<float> made, plain;
    std::vector<double> exact;
    for (extent rows : {1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 130}) {
      for (extent columns : {1, 7, 8, 9, 16, 31, 32, 33, 40, 65}) {
        const product one(rows, depth, columns, 1);
        const extent stride = columns + 3;
        const auto stored = one.run(kernels::write::store, stride);
        for (extent r = 0; r < rows; ++r) {
          for (extent j = 0; j < columns; ++j) made.push_back(stored[r * stride + j]);
          for (extent j = columns; j < stride; ++j) REQUIRE_EQ(stored[r * stride + j], untouched);
        }
        append(plain, reference::linear<float>(one.a, one.b, {}, rows, depth, columns));
        append(exact, reference::linear<double>(to_double(one.a), to_double(one.b), {}, rows, depth,
                                                columns));
      }
    }
    CAPTURE(depth);
    check_near(made, plain, exact);
  }
}

TEST_CASE("gemm adds to what is there, and a depth of 0 stores zeros") {
  const auto added = product(5, 1, 9, 2).run(kernels::write::add, 9);
  const auto stored = product(5, 1, 9, 2).run(kernels::write::store, 9);
  for (std::size_t i = 0; i < added.size(); ++i) CHECK_EQ(added[i], untouched + stored[i]);
  CHECK_EQ(product(5, 0, 9, 2).run(kernels::write::store, 9), std::vector<float>(45, 0.0f));
  CHECK_EQ(product(5, 0, 9, 2).run(kernels::write::add, 9), std::vector<float>(45, untouched));
  CHECK_EQ(product(1, 0, 9, 2).run(kernels::write::store, 9), std::vector<float>(9, 0.0f));
}

TEST_CASE("a row of gemm has the same bits alone and among others") {
  const product all(70, 300, 37, 3);
  const auto together = all.run(kernels::write::store, 37);
  for (extent r = 0; r < 70; ++r) {
    product alone(1, 300, 37, 3);
    alone.a.assign(&all.a[r * 300], &all.a[r * 300] + 300);
    alone.b = all.b;
    const auto row = alone.run(kernels::write::store, 37);
    CHECK(std::equal(row.begin(), row.end(), &together[r * 37]));
  }
}
