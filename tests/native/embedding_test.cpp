#include "qkv/embedding.hpp"

#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;

namespace {

const std::vector<float> table{0, 1, 10, 11, 20, 21};

view<const float, 2> rows() { return view<const float, 2>::contiguous(table.data(), {3, 2}); }

view<float, 2> to(std::vector<float>& out, extent count, extent dim) {
  return view<float, 2>::contiguous(out.data(), {count, dim});
}

}  // namespace

TEST_CASE("embedding gives the rows that are named, in any order and as often as named") {
  const std::vector<std::int32_t> indices{2, 0, 2, 1};
  std::vector<float> out(8, -1);
  REQUIRE_EQ(embedding_forward(rows(), indices.data(), to(out, 4, 2)), status::ok);
  CHECK_EQ(out, std::vector<float>{20, 21, 0, 1, 20, 21, 10, 11});
  REQUIRE_EQ(embedding_forward(rows(), nullptr, to(out, 0, 2)), status::ok);
}

TEST_CASE("embedding between rows that lie apart") {
  const std::vector<std::int32_t> indices{1, 0};
  std::vector<float> out(6, -1);
  REQUIRE_EQ(embedding_forward({table.data(), {2, 1}, {4, 1}}, indices.data(),
                               {out.data(), {2, 1}, {3, 1}}),
             status::ok);
  CHECK_EQ(out, std::vector<float>{20, -1, -1, 0, -1, -1});
}

TEST_CASE("embedding refuses indices outside its table, and writes nothing then") {
  std::vector<float> out(4, -1);
  for (std::int32_t wrong : {-1, 3}) {
    const std::vector<std::int32_t> indices{0, wrong};
    CHECK_EQ(embedding_forward(rows(), indices.data(), to(out, 2, 2)), status::invalid_argument);
  }
  const std::vector<std::int32_t> indices{0, 1};
  CHECK_EQ(embedding_forward(rows(), indices.data(), to(out, 1, 3)), status::shape_mismatch);
  CHECK_EQ(embedding_forward({table.data(), {2, 2}, {1, 2}}, indices.data(), to(out, 2, 2)),
           status::invalid_argument);
  CHECK_EQ(embedding_forward(rows(), indices.data(), {out.data(), {2, 2}, {1, 2}}),
           status::invalid_argument);
  CHECK_EQ(out, std::vector<float>(4, -1));
}

namespace {

std::vector<float> run_backward(const std::vector<float>& d_out,
                                const std::vector<std::int32_t>& indices, extent rows, extent dim,
                                int threads = 1) {
  std::vector<float> d_table(rows * dim, -1);
  thread_pool pool(threads);
  const auto count = static_cast<extent>(indices.size());
  test::scratch memory(embedding_backward_workspace_bytes(count, rows));
  REQUIRE_EQ(embedding_backward(
                 view<const float, 2>::contiguous(d_out.data(), {count, dim}), indices.data(),
                 view<float, 2>::contiguous(d_table.data(), {rows, dim}), memory, pool),
             status::ok);
  return d_table;
}

}  // namespace

TEST_CASE("embedding_backward adds up what a row was named for, and leaves zeros elsewhere") {
  CHECK_EQ(run_backward({1, 2, 3, 4, 5, 6}, {2, 0, 2}, 4, 2),
           std::vector<float>{3, 4, 0, 0, 6, 8, 0, 0});
  CHECK_EQ(run_backward({}, {}, 2, 2), std::vector<float>(4, 0));
  CHECK(run_backward({}, {1, 0}, 2, 0).empty());
  test::number_source numbers(1);
  for (extent dim : {1, 3, 4, 5, 64, 65, 150}) {
    std::vector<std::int32_t> indices;
    for (int i = 0; i < 200; ++i) indices.push_back(static_cast<std::int32_t>(numbers.below(7)));
    const auto d_out = numbers.floats(200 * dim);
    const auto made = run_backward(d_out, indices, 9, dim);
    test::check_near(
        made, reference::embedding_backward<float>(d_out, indices, 9, dim),
        reference::embedding_backward<double>(test::to_double(d_out), indices, 9, dim));
    for (int threads : {2, 8}) CHECK_EQ(run_backward(d_out, indices, 9, dim, threads), made);
  }
}

TEST_CASE("embedding_backward keeps its digits where a row is named a million times") {
  const extent count = 1000000;
  const std::vector<float> d_out(2 * count, 0.1f);
  std::vector<std::int32_t> indices(count, 1);
  CHECK_EQ(run_backward(d_out, indices, 3, 2)[2], doctest::Approx(count * 0.1f).epsilon(1e-5));
}

TEST_CASE("embedding_backward refuses what does not fit, and writes nothing then") {
  const std::vector<float> d_out{1, 2, 3, 4};
  std::vector<float> d_table(6, -1);
  const auto refuses = [&](view<const float, 2> from, std::vector<std::int32_t> indices,
                           view<float, 2> onto, status expected) {
    thread_pool pool(1);
    test::scratch memory(embedding_backward_workspace_bytes(2, 3));
    CHECK_EQ(embedding_backward(from, indices.data(), onto, memory, pool), expected);
  };
  const auto from = view<const float, 2>::contiguous(d_out.data(), {2, 2});
  const auto onto = to(d_table, 3, 2);
  refuses(from, {0, 3}, onto, status::invalid_argument);
  refuses(from, {-1, 0}, onto, status::invalid_argument);
  refuses(from, {0, 0}, to(d_table, 2, 3), status::shape_mismatch);
  refuses({d_out.data(), {2, 2}, {1, 2}}, {0, 0}, onto, status::invalid_argument);
  refuses(from, {0, 0}, {d_table.data(), {3, 2}, {1, 3}}, status::invalid_argument);
  const std::int32_t indices[] = {0, 2};
  thread_pool pool(1);
  test::scratch small(8);
  CHECK_EQ(embedding_backward(from, indices, onto, small, pool), status::out_of_memory);
  CHECK_EQ(d_table, std::vector<float>(6, -1));
}
