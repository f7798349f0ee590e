// A sequence model learns: steps, what they refuse, what they take.
#include "support/sequence_case.hpp"

using namespace qkv;
using test::sequence_case;

namespace {

using mixer = sequence_mixer;

// A model between steps.
struct learner {
  sequence_case one;
  std::vector<float> gradients, mean, square;
  sequence_training training;
  sequence_result result;
  sequence_fault fault;

  explicit learner(sequence_case given)
      : one(std::move(given)),
        gradients(one.parameters.size(), test::quiet_nan),
        mean(one.parameters.size()),
        square(one.parameters.size()) {
    training = {gradients.data(), {.learning_rate = 3e-3}, {mean.data(), square.data()}};
  }
  learner(const learner&) = delete;

  status step(int threads = 1) {
    return one.run(sequence_task::train, threads, [&](workspace memory, thread_pool& pool) {
      return sequence_train_step(one.model, one.parameters.data(), one.inputs(), one.targets.data(),
                                 training, result, fault, memory, pool);
    });
  }
};

sequence_case case_of(mixer which, extent symbols, const sequence_sizes& sizes) {
  const bool attends = which == mixer::attention;
  return {{.mixer = which,
           .positions = attends ? sequence_positions::sinusoidal : sequence_positions::none,
           .residual = attends,
           .vocab = symbols,
           .embed_dim = 16,
           .classes = symbols},
          sizes};
}

// Sequences whose first token is asked for at the end.
void ask_for_first(sequence_case& one, test::number_source& numbers) {
  for (auto& token : one.tokens) token = static_cast<std::int32_t>(numbers.below(one.model.vocab));
  for (extent b = 0; b < one.sizes.batch; ++b) one.targets[b] = one.tokens[b * one.sizes.length];
}

// The first step after which the mean of accuracies, each worth a tenth less than the next, is
// 0.95.
int steps_to_learn(mixer which, extent length, int most) {
  learner all(case_of(which, 4, {16, length, 0}));
  all.training.optimizer.learning_rate = 0.01;
  test::number_source numbers(5);
  double mean = 0;
  for (int step = 1; step <= most; ++step) {
    ask_for_first(all.one, numbers);
    REQUIRE_EQ(all.step(), status::ok);
    mean += 0.1 * (all.result.accuracy - mean);
    if (mean >= 0.95) return step;
  }
  return most + 1;
}

}  // namespace

TEST_CASE("every mixer learns to recall the first token: of eight, a plain rnn of four") {
  CHECK_LE(steps_to_learn(mixer::attention, 8, 300), 300);
  CHECK_LE(steps_to_learn(mixer::lstm, 8, 300), 300);
  CHECK_LE(steps_to_learn(mixer::gru, 8, 300), 300);
  CHECK_LE(steps_to_learn(mixer::rnn, 4, 300), 300);
}

TEST_CASE("a training step is the loss, its gradients and a step of Adam") {
  for (const mixer which : {mixer::attention, mixer::lstm}) {
    learner all(case_of(which, 5, {3, 6, 0}));
    all.training.optimizer.clip = 0.5;
    const sequence_case before = all.one;
    REQUIRE_EQ(all.step(), status::ok);
    const auto learned = before.gradients();
    CHECK_EQ(all.gradients, learned.gradients);
    CHECK_EQ(all.result.loss, learned.result.loss);
    CHECK_EQ(all.result.accuracy, learned.result.accuracy);
    std::vector<float> parameters = before.parameters;
    std::vector<float> mean(parameters.size()), square(parameters.size());
    adam_state state{mean.data(), square.data()};
    adam_fault fault;
    thread_pool pool(1);
    const auto count = static_cast<extent>(parameters.size());
    test::scratch memory(adam_workspace_bytes(count));
    REQUIRE_EQ(adam_step(parameters.data(), learned.gradients.data(), count, all.training.optimizer,
                         state, fault, memory, pool),
               status::ok);
    CHECK_EQ(all.one.parameters, parameters);
    CHECK_EQ(all.mean, mean);
    CHECK_EQ(all.training.state.beta1_power, state.beta1_power);
  }
}

TEST_CASE("training has the same bits for any number of threads, and whether it is checked") {
  const auto trained = [](int threads, bool check) {
    learner all(case_of(mixer::attention, 4, {16, 40, 0}));
    all.training.check = check;
    test::number_source numbers(2);
    for (int step = 0; step < 5; ++step) {
      ask_for_first(all.one, numbers);
      REQUIRE_EQ(all.step(threads), status::ok);
    }
    return all.one.parameters;
  };
  const auto alone = trained(1, false);
  for (int threads : {2, 3}) CHECK_EQ(trained(threads, false), alone);
  CHECK_EQ(trained(1, true), alone);
}

TEST_CASE("a step that cannot be made says where, and leaves parameters and moments as they were") {
  using in = sequence_fault::in;
  const auto failed = [](const auto& spoil, bool check) {
    learner all(case_of(mixer::attention, 4, {2, 3, 0}));
    REQUIRE_EQ(all.step(), status::ok);
    all.training.check = check;
    spoil(all);
    const auto parameters = all.one.parameters, mean = all.mean, square = all.square;
    const double power = all.training.state.beta2_power;
    CHECK_EQ(all.step(), status::invalid_argument);
    const auto same = [](const auto& now, const auto& before) {
      return std::equal(now.begin(), now.end(), before.begin(), [](float x, float y) {
        return x == y || (std::isnan(x) && std::isnan(y));
      });
    };
    CHECK(same(all.one.parameters, parameters));
    CHECK(same(all.mean, mean));
    CHECK(same(all.square, square));
    CHECK_EQ(all.training.state.beta2_power, power);
    return all.fault;
  };
  const auto nan_parameter = [](learner& all) { all.one.parameters[70] = test::quiet_nan; };
  for (bool check : {false, true}) {
    const auto fault = failed(nan_parameter, check);
    CHECK_EQ(fault.what, in::parameter);
    CHECK_EQ(fault.element, 70);
    CHECK(std::isnan(fault.value));
  }
  // Finite parameters whose products are beyond floats: NaN in the loss, and in its gradients.
  const auto large = [](learner& all) {
    std::fill(all.one.parameters.begin(), all.one.parameters.end(), 1e30f);
  };
  CHECK_EQ(failed(large, true).what, in::loss);
  CHECK_EQ(failed(large, false).what, in::gradient);
  const auto far_step = [](learner& all) { all.training.optimizer.learning_rate = 1e39; };
  const auto fault = failed(far_step, true);
  CHECK_EQ(fault.what, in::new_parameter);
  CHECK_FALSE(std::isfinite(fault.value));
}

TEST_CASE(
    "what a sequence model takes grows as its rows, and without gradients not as its layers") {
  const auto bytes = [](mixer which, sequence_task task, extent length, extent layers) {
    const sequence_model model{.mixer = which,
                               .residual = which == mixer::attention,
                               .vocab = 16,
                               .embed_dim = 64,
                               .classes = 16,
                               .layers = layers};
    return sequence_workspace_bytes(model, {8, length, 0}, task, 1);
  };
  using enum sequence_task;
  for (const mixer which : {mixer::attention, mixer::lstm}) {
    for (const sequence_task task : {forward, evaluate, gradients, train}) {
      CHECK_LT(bytes(which, task, 8192, 3), 2.05 * bytes(which, task, 4096, 3));
    }
    CHECK_EQ(bytes(which, forward, 4096, 3), bytes(which, forward, 4096, 9));
    // Rows of a layer: x and five of attention, or what a cell keeps for its way back.
    const byte_count layer =
        (bytes(which, gradients, 4096, 9) - bytes(which, gradients, 4096, 3)) / 6;
    CHECK_LT(layer, (which == mixer::attention ? 6u : 10u) * 8 * 4096 * 64 * sizeof(float));
  }
  // More than memory can hold is said, and does not wrap around.
  const sequence_model large{.vocab = largest_sequence_axis,
                             .embed_dim = largest_sequence_axis,
                             .classes = 2,
                             .layers = most_sequence_layers};
  CHECK_GT(sequence_parameter_count(large), 1ull << 58);
  CHECK_GT(sequence_workspace_bytes(large, {1, 1, 0}, train, 1), 1ull << 60);
}
