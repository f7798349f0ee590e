// Seeded random shapes and options, all at once.
#include "support/random_case.hpp"

using namespace qkv;
using namespace qkv::test;

TEST_CASE(
    "random shapes and options: right, the same bits for any threads and extras, rows that sum to "
    "1") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const random_case one(seed);
    CAPTURE(seed);
    one.check();
    const auto made = one.run();
    const extent key_len = one.sizes.key_len;
    const bool sinks = one.rules.sinks != nullptr;
    for (extent row = 0; row * key_len < static_cast<extent>(made.weights.size()); ++row) {
      double sum = 0;
      for (extent j = 0; j < key_len; ++j) sum += made.weights[row * key_len + j];
      if (made.log_sum_exp[row] == -std::numeric_limits<float>::infinity()) {
        CHECK_EQ(sum, 0);
      } else if (!sinks) {
        CHECK_EQ(sum, doctest::Approx(1).epsilon(1e-5));
      }
    }
    if (seed % 8 == 0) {
      CHECK_EQ(one.run(1, false).out, made.out);
      CHECK(one.run(3) == made);
    }
  }
}
