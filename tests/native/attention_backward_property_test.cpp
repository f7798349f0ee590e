// Gradients of seeded random shapes and options, all at once.
#include "support/gradient_case.hpp"
#include "support/random_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

void check_threads(const attention_case& one) {
  const auto d_out = output_gradient(one);
  const auto made = run_backward(one, d_out);
  for (int threads : {2, 3, 8}) {
    CAPTURE(threads);
    CHECK(run_backward(one, d_out, threads) == made);
  }
}

}  // namespace

TEST_CASE("gradients of random shapes and options: right, and the same bits for any threads") {
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    const random_case one(seed);
    CAPTURE(seed);
    check_backward(one);
    if (seed % 4 == 0) check_threads(one);
  }
}

TEST_CASE("gradients of random options over several tiles of queries and keys") {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const random_case one(seed, {400, 700, 6});
    CAPTURE(seed);
    check_backward(one);
    check_threads(one);
  }
}
