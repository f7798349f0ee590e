// What a sequence model refuses, with everything untouched.
#include <functional>

#include "support/sequence_case.hpp"

using namespace qkv;
using test::sequence_case;

namespace {

using mixer = sequence_mixer;
using readout = sequence_readout;

sequence_model model_of(mixer which, readout wanted) {
  const bool learns_positions = wanted != readout::pointer;
  return {.mixer = which,
          .positions = learns_positions ? sequence_positions::learned : sequence_positions::none,
          .readout = wanted,
          .vocab = 6,
          .embed_dim = 4,
          .classes = 3,
          .num_heads = 2,
          .max_length = learns_positions ? 5 : 0};
}

// What each call says once the case has been changed; all must say the same, and write nothing.
status outcome(sequence_case one, const std::function<void(sequence_case&)>& change,
               bool targets_matter = false) {
  change(one);
  std::vector<float> written(4096, -1);
  const auto run = [&](sequence_task task, const auto& call) { return one.run(task, 1, call); };
  const status loss = run(sequence_task::gradients, [&](workspace memory, thread_pool& pool) {
    sequence_result result;
    return sequence_loss(one.model, one.parameters.data(), one.inputs(), one.targets.data(), result,
                         {written.data(), written.data() + 2048}, memory, pool);
  });
  const status forward = run(sequence_task::forward, [&](workspace memory, thread_pool& pool) {
    return sequence_forward(one.model, one.parameters.data(), one.inputs(), written.data() + 3000,
                            memory, pool);
  });
  if (targets_matter) return loss;
  CHECK_EQ(forward, loss);
  if (loss != status::ok) CHECK_EQ(written, std::vector<float>(written.size(), -1));
  return loss;
}

}  // namespace

TEST_CASE("a sequence model that cannot be is refused") {
  const auto refused = [](mixer which, const std::function<void(sequence_model&)>& change) {
    sequence_model model = model_of(which, readout::last);
    CHECK_GT(sequence_parameter_count(model), 0);
    change(model);
    sequence_parameter unused;
    CHECK_EQ(sequence_parameter_count(model), 0);
    CHECK_FALSE(sequence_parameter_at(model, 0, unused));
    CHECK_EQ(sequence_workspace_bytes(model, {1, 1, 0}, sequence_task::train, 1), 0);
    CHECK_EQ(sequence_start(model, {}, nullptr, {}), status::invalid_argument);
    thread_pool pool(1);
    const std::int32_t token = 0;
    CHECK_EQ(sequence_forward(model, nullptr, {&token, 1, 1}, nullptr, {}, pool),
             status::invalid_argument);
  };
  for (const mixer which : {mixer::attention, mixer::lstm}) {
    refused(which, [](sequence_model& model) { model.vocab = 0; });
    refused(which, [](sequence_model& model) { model.embed_dim = 0; });
    refused(which, [](sequence_model& model) { model.classes = -1; });
    refused(which, [](sequence_model& model) { model.vocab = largest_sequence_axis + 1; });
    refused(which, [](sequence_model& model) { model.layers = 0; });
    refused(which, [](sequence_model& model) { model.layers = most_sequence_layers + 1; });
    refused(which, [](sequence_model& model) { model.max_length = 0; });
  }
  refused(mixer::attention, [](sequence_model& model) { model.num_heads = 3; });
  refused(mixer::attention, [](sequence_model& model) { model.num_heads = 0; });
  refused(mixer::attention, [](sequence_model& model) {
    model.positions = sequence_positions::rotary;
    model.num_heads = 4;
  });
  refused(mixer::rnn, [](sequence_model& model) { model.causal = true; });
  refused(mixer::rnn, [](sequence_model& model) { model.ties = sequence_ties::all; });
  refused(mixer::gru, [](sequence_model& model) { model.readout = readout::pointer; });
  refused(mixer::gru, [](sequence_model& model) { model.positions = sequence_positions::rotary; });
}

TEST_CASE("a sequence model refuses tokens, lengths and places outside what there is") {
  for (const mixer which : {mixer::attention, mixer::gru}) {
    for (const readout wanted : {readout::last, readout::every}) {
      const sequence_case one(model_of(which, wanted), {2, 5, 0});
      const auto said = [&](const std::function<void(sequence_case&)>& change) {
        return outcome(one, change);
      };
      const bool reads_one = wanted == readout::last;
      const auto unless = [](bool refused) {
        return refused ? status::invalid_argument : status::ok;
      };
      CHECK_EQ(said([](sequence_case&) {}), status::ok);
      for (std::int32_t token : {-1, 6}) {
        CHECK_EQ(said([=](sequence_case& all) { all.tokens[9] = token; }), unless(true));
        // Beyond the length nobody reads it.
        CHECK_EQ(said([=](sequence_case& all) {
                   all.tokens[9] = token;
                   all.lengths = {5, 4};
                 }),
                 status::ok);
      }
      CHECK_EQ(said([](sequence_case& all) { all.lengths = {6, 5}; }), unless(true));
      CHECK_EQ(said([](sequence_case& all) { all.lengths = {5, -1}; }), unless(true));
      CHECK_EQ(said([](sequence_case& all) { all.lengths = {5, 0}; }), unless(reads_one));
      CHECK_EQ(said([](sequence_case& all) { all.read_at = {0, 4}; }), unless(!reads_one));
      CHECK_EQ(said([](sequence_case& all) { all.read_at = {0, 5}; }), unless(true));
      CHECK_EQ(said([](sequence_case& all) { all.read_at = {-1, 0}; }), unless(true));
      CHECK_EQ(said([](sequence_case& all) {
                 all.lengths = {5, 3};
                 all.read_at = {0, 3};
               }),
               unless(true));
      CHECK_EQ(said([](sequence_case& all) {
                 all.sizes.length = 6;
                 all.tokens.resize(12);
                 all.targets.resize(12);
               }),
               unless(true));
    }
  }
}

TEST_CASE("a sequence model refuses a context that it cannot have") {
  const sequence_case one(model_of(mixer::attention, readout::last), {2, 4, 3});
  const auto said = [&](const std::function<void(sequence_case&)>& change) {
    return outcome(one, change);
  };
  CHECK_EQ(said([](sequence_case&) {}), status::ok);
  CHECK_EQ(said([](sequence_case& all) { all.context[5] = 6; }), status::invalid_argument);
  CHECK_EQ(said([](sequence_case& all) { all.context_lengths = {3, 4}; }),
           status::invalid_argument);
  CHECK_EQ(said([](sequence_case& all) { all.context_lengths = {3, 0}; }), status::ok);
  CHECK_EQ(said([](sequence_case& all) { all.sizes.context_length = 0; }),
           status::invalid_argument);
  CHECK_EQ(said([](sequence_case& all) { all.context.clear(); }), status::invalid_argument);
  CHECK_EQ(said([](sequence_case& all) { all.model.causal = true; }), status::invalid_argument);
  CHECK_EQ(said([](sequence_case& all) {
             all.sizes.context_length = 6;
             all.context.assign(12, 0);
           }),
           status::invalid_argument);
  sequence_case cell(model_of(mixer::rnn, readout::last), {2, 4, 3});
  CHECK_EQ(outcome(cell, [](sequence_case&) {}), status::invalid_argument);
}

TEST_CASE("a sequence model refuses targets that no answer can be") {
  for (const readout wanted : {readout::last, readout::every, readout::pointer}) {
    const sequence_case one(model_of(mixer::attention, wanted), {2, 5, 0});
    const auto said = [&](std::int32_t target, std::vector<std::int32_t> lengths = {}) {
      return outcome(
          one,
          [&](sequence_case& all) {
            all.targets.back() = target;
            all.lengths = std::move(lengths);
          },
          true);
    };
    const std::int32_t limit = wanted == readout::pointer ? 5 : 3;
    CHECK_EQ(said(limit - 1), status::ok);
    CHECK_EQ(said(limit), status::invalid_argument);
    CHECK_EQ(said(-2), status::invalid_argument);
    CHECK_EQ(said(-1), wanted == readout::every ? status::ok : status::invalid_argument);
    if (wanted == readout::pointer) CHECK_EQ(said(4, {5, 4}), status::invalid_argument);
    if (wanted == readout::every) CHECK_EQ(said(99, {5, 4}), status::ok);
  }
}

TEST_CASE("a causal pointer refuses a target behind the row that is read, which it does not see") {
  for (const bool causal : {false, true}) {
    sequence_case one(model_of(mixer::attention, readout::pointer), {2, 5, 0});
    one.model.causal = causal;
    one.read_at = {4, 2};
    const auto said = [&](std::int32_t target) {
      return outcome(one, [&](sequence_case& all) { all.targets = {4, target}; }, true);
    };
    CHECK_EQ(said(2), status::ok);
    CHECK_EQ(said(3), causal ? status::invalid_argument : status::ok);
  }
}

TEST_CASE("a sequence model refuses a workspace too small, and what has no gradients or weights") {
  const sequence_case one(model_of(mixer::attention, readout::last), {2, 5, 0});
  thread_pool pool(1);
  std::vector<float> output(one.output_count(), -1), memory(1 << 16);
  const auto with = [&](byte_count missing) {
    const byte_count bytes =
        sequence_workspace_bytes(one.model, one.sizes, sequence_task::forward, 1);
    return sequence_forward(one.model, one.parameters.data(), one.inputs(), output.data(),
                            {memory.data(), bytes - missing}, pool);
  };
  CHECK_EQ(with(1), status::out_of_memory);
  CHECK_EQ(output, std::vector<float>(output.size(), -1));
  CHECK_EQ(with(0), status::ok);
  const workspace all{memory.data(), memory.size() * sizeof(float)};
  sequence_result result;
  CHECK_EQ(sequence_loss(one.model, one.parameters.data(), one.inputs(), one.targets.data(), result,
                         {nullptr, output.data()}, all, pool),
           status::invalid_argument);
  const sequence_case cell(model_of(mixer::rnn, readout::last), {2, 5, 0});
  CHECK_EQ(
      sequence_weights(cell.model, cell.parameters.data(), cell.inputs(), output.data(), all, pool),
      status::invalid_argument);
}
