// What a sequence model's bits do not depend on.
#include "support/sequence_case.hpp"

using namespace qkv;
using test::sequence_case;

namespace {

// Large enough for work to be shared out.
std::vector<sequence_case> cases() {
  std::vector<sequence_case> made;
  for (const auto mixer : {sequence_mixer::attention, sequence_mixer::rnn, sequence_mixer::lstm,
                           sequence_mixer::gru}) {
    const bool attends = mixer == sequence_mixer::attention;
    for (const auto readout :
         {sequence_readout::last, sequence_readout::every, sequence_readout::pointer}) {
      if (!attends && readout == sequence_readout::pointer) continue;
      sequence_case one(
          {.mixer = mixer,
           .positions = attends ? sequence_positions::rotary : sequence_positions::none,
           .readout = readout,
           .residual = attends,
           .vocab = 11,
           .embed_dim = 24,
           .classes = 11,
           .layers = 2,
           .num_heads = 2},
          {5, 70, attends ? 37 : 0});
      one.set_ragged();
      made.push_back(one);
    }
  }
  return made;
}

sequence_case alone(const sequence_case& from, extent b) {
  sequence_case one = from;
  const auto cut = [&](std::vector<std::int32_t>& numbers) {
    const extent each = static_cast<extent>(numbers.size()) / from.sizes.batch;
    numbers = {numbers.begin() + b * each, numbers.begin() + (b + 1) * each};
  };
  for (auto* numbers : {&one.tokens, &one.lengths, &one.context, &one.context_lengths})
    cut(*numbers);
  one.sizes.batch = 1;
  return one;
}

}  // namespace

TEST_CASE("sequence model: the same bits for any number of threads") {
  for (const sequence_case& one : cases()) {
    const auto forward = one.forward();
    const auto learned = one.gradients();
    const bool attends = one.model.mixer == sequence_mixer::attention;
    const auto weights = attends ? one.weights() : std::vector<float>{};
    for (int threads : {2, 3}) {
      CHECK_EQ(one.forward(threads), forward);
      const auto again = one.gradients(threads);
      CHECK_EQ(again.gradients, learned.gradients);
      CHECK_EQ(again.norms, learned.norms);
      CHECK_EQ(again.result.loss, learned.result.loss);
      if (attends) CHECK_EQ(one.weights(threads), weights);
    }
  }
}

TEST_CASE("sequence model: a sequence's numbers do not depend on the batch") {
  for (const sequence_case& all : cases()) {
    const auto together = all.forward();
    const auto each = static_cast<extent>(together.size()) / all.sizes.batch;
    for (extent b = 0; b < all.sizes.batch; ++b) {
      const auto begin = together.begin() + b * each;
      CHECK_EQ(alone(all, b).forward(), std::vector<float>(begin, begin + each));
    }
  }
}

TEST_CASE("sequence model: a sequence's logits do not depend on what is put behind it") {
  for (const sequence_case& all : cases()) {
    const auto together = all.forward();
    const auto each = static_cast<extent>(together.size()) / all.sizes.batch;
    for (extent b = 0; b < all.sizes.batch; ++b) {
      sequence_case one = alone(all, b);
      one.sizes.length = one.lengths[0];
      one.tokens.resize(one.lengths[0]);
      one.lengths.clear();
      const auto own = one.forward();
      const auto begin = together.begin() + b * each;
      CHECK_EQ(own, std::vector<float>(begin, begin + static_cast<extent>(own.size())));
    }
  }
}
