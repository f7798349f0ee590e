#include "qkv/positional.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "support/doctest.hpp"

using namespace qkv;

TEST_CASE("sinusoidal: sine in even columns, cosine in odd ones") {
  for (extent dim : {1, 4, 7}) {
    std::vector<float> out(50 * dim);
    REQUIRE_EQ(sinusoidal(view<float, 2>::contiguous(out.data(), {50, dim})), status::ok);
    for (extent t = 0; t < 50; ++t) {
      for (extent i = 0; 2 * i < dim; ++i) {
        const double angle = t / std::pow(10000.0, 2.0 * i / dim);
        CHECK_EQ(out[t * dim + 2 * i], doctest::Approx(std::sin(angle)).epsilon(1e-6));
        if (2 * i + 1 < dim)
          CHECK_EQ(out[t * dim + 2 * i + 1], doctest::Approx(std::cos(angle)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("sinusoidal refuses a base that is none") {
  std::vector<float> out(4);
  for (double base : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                      std::numeric_limits<double>::infinity()}) {
    CHECK_EQ(sinusoidal(view<float, 2>::contiguous(out.data(), {2, 2}), base),
             status::invalid_argument);
  }
  // With a base of 2^-62 the angles of columns 2 and 3 are t * 2^31.
  CHECK_EQ(sinusoidal(view<float, 2>::contiguous(out.data(), {1, 4}), 0x1p-62),
           status::invalid_argument);
  CHECK_EQ(sinusoidal(view<float, 2>::contiguous(out.data(), {1, 4}), 0x1p-58), status::ok);
}
