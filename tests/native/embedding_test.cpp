#include "qkv/embedding.hpp"

#include <vector>

#include "support/doctest.hpp"

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
