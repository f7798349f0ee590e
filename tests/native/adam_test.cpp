#include "qkv/adam.hpp"

#include "qkv/reference_layers.hpp"
#include "support/near.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

struct optimizer {
  std::vector<float> parameters, mean, square;
  adam_options options;
  adam_state state;
  adam_fault fault;
  int threads = 1;

  explicit optimizer(std::vector<float> start, adam_options options = {})
      : parameters(std::move(start)),
        mean(parameters.size()),
        square(parameters.size()),
        options(options),
        state{mean.data(), square.data()} {}

  status step(const std::vector<float>& gradients, std::size_t missing = 0) {
    const extent count = static_cast<extent>(parameters.size());
    thread_pool pool(threads);
    scratch memory(adam_workspace_bytes(count) - missing);
    return adam_step(parameters.data(), gradients.data(), count, options, state, fault, memory,
                     pool);
  }
};

template <typename T>
std::vector<T> plain_loop(const std::vector<float>& start,
                          const std::vector<std::vector<float>>& gradients,
                          const adam_options& options) {
  std::vector<T> parameters(start.begin(), start.end());
  reference::adam_moments<T> moments{std::vector<T>(start.size()), std::vector<T>(start.size())};
  const reference::adam_settings settings{options.learning_rate, options.beta1,
                                          options.beta2,         options.epsilon,
                                          options.weight_decay,  options.clip};
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    reference::adam_step<T>(parameters, {gradients[t].begin(), gradients[t].end()}, moments,
                            settings, static_cast<int>(t) + 1);
  }
  return parameters;
}

}  // namespace

TEST_CASE("adam is right over counts and options") {
  for (extent count : {1, 3, 4, 5, 4096, 4097, 9000}) {
    for (const adam_options& options :
         {adam_options{}, adam_options{.learning_rate = 0.05, .beta1 = 0.5, .beta2 = 0.9},
          adam_options{.learning_rate = 0.01, .epsilon = 1e-3, .weight_decay = 0.3},
          adam_options{.learning_rate = 0.01, .clip = 0.5},
          adam_options{.learning_rate = 0.01, .beta1 = 0, .beta2 = 0}}) {
      CAPTURE(count);
      number_source numbers(1);
      const auto start = numbers.floats(count);
      std::vector<std::vector<float>> gradients;
      optimizer one(start, options);
      for (int t = 0; t < 6; ++t) {
        gradients.push_back(numbers.floats(count));
        REQUIRE_EQ(one.step(gradients.back()), status::ok);
      }
      check_near(one.parameters, plain_loop<float>(start, gradients, options),
                 plain_loop<double>(start, gradients, options));
    }
  }
}

TEST_CASE("adam takes known steps") {
  // The first step is the learning rate, whatever the gradient: epsilon comes after the correction.
  optimizer one({1, 1, 1}, {.learning_rate = 0.1, .epsilon = 0});
  REQUIRE_EQ(one.step({1e-6f, -3, 0}), status::ok);
  CHECK_LE(largest_error(one.parameters, {0.9, 1.1, 1}), 1e-7);
  // Then by hand: mean = 0.1 * 1 * 0.9 + 0.1 * 3 = 0.39, square = 0.000999 + 0.009.
  optimizer two({0}, {.learning_rate = 0.1, .epsilon = 0.5});
  REQUIRE_EQ(two.step({1}), status::ok);
  REQUIRE_EQ(two.step({3}), status::ok);
  const double step = 0.1 * (0.39 / 0.19) / (std::sqrt(0.009999 / 0.001999) + 0.5);
  CHECK_EQ(two.parameters[0], doctest::Approx(-0.1 / 1.5 - step).epsilon(1e-6));
  // Decay is apart from the gradient: of a parameter without one, only the decay is left.
  optimizer three({2}, {.learning_rate = 0.1, .weight_decay = 0.5});
  REQUIRE_EQ(three.step({0}), status::ok);
  CHECK_EQ(three.parameters[0], doctest::Approx(1.9).epsilon(1e-7));
}

TEST_CASE("adam clips by the norm of all gradients, also where their squares leave float") {
  number_source numbers(2);
  const auto direction = numbers.floats(5000);
  double norm = 0;
  for (float value : direction) norm += static_cast<double>(value) * value;
  norm = std::sqrt(norm);
  const auto times = [&](double factor) {
    std::vector<float> scaled;
    for (float value : direction) scaled.push_back(static_cast<float>(value * factor));
    return scaled;
  };
  // A large epsilon, or the size of the gradient would hardly matter.
  const adam_options options{.learning_rate = 0.1, .epsilon = 1, .clip = 2};
  optimizer expected(std::vector<float>(5000, 0), options);
  REQUIRE_EQ(expected.step(times(2 / norm)), status::ok);
  for (double factor : {1.0, 1e20, 3e38}) {
    optimizer one(std::vector<float>(5000, 0), options);
    REQUIRE_EQ(one.step(times(factor)), status::ok);
    CHECK_LE(largest_error(one.parameters, to_double(expected.parameters)), 1e-8);
  }
  optimizer free(std::vector<float>(5000, 0), options), shrunk = free;
  free.state = {free.mean.data(), free.square.data()};
  free.options.clip = std::numeric_limits<double>::infinity();
  shrunk.state = {shrunk.mean.data(), shrunk.square.data()};
  REQUIRE_EQ(free.step(times(1 / norm)), status::ok);
  REQUIRE_EQ(shrunk.step(times(1 / norm)), status::ok);
  CHECK_EQ(shrunk.parameters, free.parameters);
}

TEST_CASE("adam names the first number that it cannot step by, and changes nothing") {
  for (float wrong : {quiet_nan, infinity, -infinity, 0x1p63f}) {
    for (extent at : {0, 5, 4999, 8191, 8192}) {
      optimizer one(std::vector<float>(9000, 0.5f));
      REQUIRE_EQ(one.step(std::vector<float>(9000, 1)), status::ok);
      const auto before = one.parameters, mean = one.mean, square = one.square;
      std::vector<float> gradients(9000, 1);
      gradients[at] = wrong;
      gradients[8999] = quiet_nan;
      CHECK_EQ(one.step(gradients), status::invalid_argument);
      CHECK_FALSE(one.fault.in_parameters);
      CHECK_EQ(one.fault.element, at);
      CHECK_EQ(one.parameters, before);
      CHECK_EQ(one.mean, mean);
      CHECK_EQ(one.square, square);
      CHECK_EQ(one.state.beta1_power, 0.9);
      if (!std::isfinite(wrong)) {
        one.parameters[at] = wrong;
        CHECK_EQ(one.step(std::vector<float>(9000, 1)), status::invalid_argument);
        CHECK(one.fault.in_parameters);
        CHECK_EQ(one.fault.element, at);
        one.parameters[at] = 0.5f;
      }
      CHECK_EQ(one.step(std::vector<float>(9000, 1)), status::ok);
      CHECK_EQ(one.fault.element, -1);
    }
  }
  optimizer large({0, 0}, {.learning_rate = 0.1});
  REQUIRE_EQ(large.step({0x1.fffffep62f, 1}), status::ok);
  CHECK_LE(largest_error(large.parameters, {-0.1, -0.1}), 1e-7);
}

TEST_CASE("nothing that adam keeps turns denormal") {
  number_source numbers(3);
  optimizer one(std::vector<float>(4, 1));
  const auto is_clean = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](float x) { return x == 0 || std::isnormal(x); });
  };
  REQUIRE_EQ(one.step({1, 1e-12f, 1e-20f, 1e-38f}), status::ok);
  for (int t = 0; t < 120000; ++t) {
    if (one.step({0, 0, 0, 0}) != status::ok || !is_clean(one.mean) || !is_clean(one.square)) {
      FAIL("step " << t);
    }
  }
  CHECK_EQ(one.mean, std::vector<float>(4, 0));
  CHECK_EQ(one.square, std::vector<float>(4, 0));
  // Root and epsilon both 0.
  optimizer still({1, 1}, {.epsilon = 0});
  REQUIRE_EQ(still.step({0, 1e-30f}), status::ok);
  CHECK_EQ(still.parameters, std::vector<float>{1, 1});
}

TEST_CASE("adam has the same bits for any number of threads") {
  number_source numbers(4);
  const auto start = numbers.floats(30000), gradients = numbers.floats(30000);
  const adam_options options{.weight_decay = 0.1, .clip = 1};
  optimizer expected(start, options);
  for (int t = 0; t < 3; ++t) REQUIRE_EQ(expected.step(gradients), status::ok);
  for (int threads : {2, 3, 8}) {
    optimizer one(start, options);
    one.threads = threads;
    for (int t = 0; t < 3; ++t) REQUIRE_EQ(one.step(gradients), status::ok);
    CHECK_EQ(one.parameters, expected.parameters);
  }
}

TEST_CASE("adam refuses options that are none, and a workspace too small") {
  const auto refuses = [](adam_options options) {
    optimizer one({1}, options);
    CHECK_EQ(one.step({1}), status::invalid_argument);
    CHECK_EQ(one.fault.element, -1);
    CHECK_EQ(one.parameters[0], 1);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = infinity;
  for (double wrong : {-1.0, nan, infinite}) {
    refuses({.learning_rate = wrong});
    refuses({.epsilon = wrong});
    refuses({.weight_decay = wrong});
  }
  for (double wrong : {-0.1, 1.0, nan}) {
    refuses({.beta1 = wrong});
    refuses({.beta2 = wrong});
  }
  for (double wrong : {-1.0, 0.0, nan}) refuses({.clip = wrong});
  optimizer one({1});
  CHECK_EQ(one.step({1}, 68), status::out_of_memory);
  CHECK_EQ(one.parameters[0], 1);
  optimizer none({});
  CHECK_EQ(none.step({}), status::ok);
}
