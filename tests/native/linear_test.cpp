#include "qkv/linear.hpp"

#include <Eigen/Core>

#include "qkv/reference.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

std::vector<float> run(const std::vector<float>& x, const std::vector<float>& weight,
                       const std::vector<float>& bias, extent rows, extent in_dim, extent out_dim,
                       int threads = 1) {
  std::vector<float> out(rows * out_dim, quiet_nan);
  thread_pool pool(threads);
  scratch memory(linear_workspace_bytes(in_dim, out_dim, pool.size()));
  REQUIRE_EQ(linear_forward(view<const float, 2>::contiguous(x.data(), {rows, in_dim}),
                            view<const float, 2>::contiguous(weight.data(), {in_dim, out_dim}),
                            bias.empty() ? nullptr : bias.data(),
                            view<float, 2>::contiguous(out.data(), {rows, out_dim}), memory, pool),
             status::ok);
  return out;
}

using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

matrix to_matrix(const std::vector<float>& values, extent rows, extent columns) {
  matrix result(rows, columns);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

}  // namespace

TEST_CASE("linear agrees with Eigen in double, with a bias and without") {
  number_source numbers(1);
  for (extent rows : {1, 3, 64, 65, 200}) {
    for (extent in_dim : {1, 20, 257}) {
      for (extent out_dim : {1, 9, 300}) {
        const auto x = numbers.floats(rows * in_dim), weight = numbers.floats(in_dim * out_dim);
        const auto bias = numbers.floats(out_dim);
        matrix exact = to_matrix(x, rows, in_dim) * to_matrix(weight, in_dim, out_dim);
        check_near(run(x, weight, {}, rows, in_dim, out_dim),
                   reference::linear<float>(x, weight, {}, rows, in_dim, out_dim),
                   {exact.data(), exact.data() + exact.size()});
        exact.rowwise() += to_matrix(bias, 1, out_dim).row(0);
        check_near(run(x, weight, bias, rows, in_dim, out_dim),
                   reference::linear<float>(x, weight, bias, rows, in_dim, out_dim),
                   {exact.data(), exact.data() + exact.size()});
      }
    }
  }
}

TEST_CASE("linear has the same bits for any number of threads") {
  number_source numbers(2);
  const auto x = numbers.floats(150 * 70), weight = numbers.floats(70 * 600);
  const auto expected = run(x, weight, {}, 150, 70, 600);
  for (int threads : {2, 3, 8}) CHECK_EQ(run(x, weight, {}, 150, 70, 600, threads), expected);
}

TEST_CASE("a row's bits do not depend on how many others come with it, nor on threads") {
  number_source numbers(3);
  for (extent in_dim : {5, 256, 300}) {
    for (extent out_dim : {7, 32, 100, 600}) {
      const auto x = numbers.floats(40 * in_dim), weight = numbers.floats(in_dim * out_dim),
                 bias = numbers.floats(out_dim);
      for (const auto& added : {std::vector<float>{}, bias}) {
        const auto all = run(x, weight, added, 40, in_dim, out_dim);
        for (extent rows : {1, 2, 3, 16, 17}) {
          const std::vector<float> some(all.begin(), all.begin() + rows * out_dim);
          CAPTURE(rows);
          for (int threads : {1, 3}) {
            CHECK_EQ(run(x, weight, added, rows, in_dim, out_dim, threads), some);
          }
        }
      }
    }
  }
}

TEST_CASE("linear without inputs is the bias") {
  CHECK_EQ(run({}, {}, {1, 2}, 2, 0, 2), std::vector<float>{1, 2, 1, 2});
  CHECK_EQ(run({}, {}, {}, 2, 0, 2), std::vector<float>{0, 0, 0, 0});
}
