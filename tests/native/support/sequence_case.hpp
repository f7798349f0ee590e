// One problem of a sequence model with its memory, run by the library and by the plain composition.
#pragma once

#include "support/near.hpp"
#include "support/plain_sequence.hpp"
#include "support/random.hpp"
#include "support/scratch.hpp"

namespace qkv::test {

struct sequence_case {
  sequence_model model;
  sequence_starts starts;
  sequence_sizes sizes;
  std::vector<float> parameters;
  std::vector<std::int32_t> tokens, lengths, read_at, context, context_lengths, targets;

  sequence_case(const sequence_model& model, const sequence_sizes& sizes, std::uint64_t seed = 1,
                const sequence_starts& starts = {})
      : model(model), starts(starts), sizes(sizes) {
    number_source numbers(seed);
    const auto some = [&](extent count, extent limit) {
      std::vector<std::int32_t> made;
      for (extent i = 0; i < count; ++i) {
        made.push_back(static_cast<std::int32_t>(numbers.below(limit)));
      }
      return made;
    };
    tokens = some(sizes.batch * sizes.length, model.vocab);
    context = some(sizes.batch * sizes.context_length, model.vocab);
    const bool answers_all = model.readout == sequence_readout::every;
    targets = some(answers_all ? sizes.batch * sizes.length : sizes.batch,
                   model.readout == sequence_readout::pointer ? 1 : model.classes);
    parameters.assign(sequence_parameter_count(model), quiet_nan);
    scratch memory(sequence_workspace_bytes(model, sizes, sequence_task::start, 1));
    REQUIRE_EQ(sequence_start(model, starts, parameters.data(), memory), status::ok);
    // Biases that begin at 0 would hide what happens to them.
    for (extent c = 0; model.readout != sequence_readout::pointer && c < model.classes; ++c) {
      parameters.end()[-1 - c] = static_cast<float>(numbers.uniform());
    }
  }

  // Sequences of all lengths, the first as long as there is room. What lies beyond is no token.
  void set_ragged() {
    for (extent b = 0; b < sizes.batch; ++b) {
      const extent length = 1 + (sizes.length - 1 + 3 * b) % sizes.length;
      lengths.push_back(static_cast<std::int32_t>(length));
      std::fill(tokens.begin() + b * sizes.length + length, tokens.begin() + (b + 1) * sizes.length,
                -7);
      if (sizes.context_length == 0) continue;
      const extent context_length = 1 + (sizes.context_length - 1 + 2 * b) % sizes.context_length;
      context_lengths.push_back(static_cast<std::int32_t>(context_length));
    }
  }

  // Some row in the middle of each sequence.
  void set_read_at() {
    for (extent b = 0; b < sizes.batch; ++b) {
      read_at.push_back(static_cast<std::int32_t>(length_of(b) / 2));
    }
  }

  // A third of the rows is not asked about.
  void skip_answers() {
    for (std::size_t i = 0; i < targets.size(); i += 3) targets[i] = -1;
  }

  // The targets of a pointer, among the keys that its row may see.
  void set_places() {
    for (extent b = 0; b < sizes.batch; ++b) {
      targets[b] =
          static_cast<std::int32_t>((b * 5 + 1) % (model.causal ? read_of(b) + 1 : keys_of(b)));
    }
  }

  extent length_of(extent b) const { return lengths.empty() ? sizes.length : lengths[b]; }
  extent read_of(extent b) const { return read_at.empty() ? length_of(b) - 1 : read_at[b]; }
  extent keys_of(extent b) const {
    if (sizes.context_length == 0) return length_of(b);
    return context_lengths.empty() ? sizes.context_length : context_lengths[b];
  }
  extent key_len() const { return sizes.context_length > 0 ? sizes.context_length : sizes.length; }

  sequence_inputs inputs() const {
    const auto given = [](const std::vector<std::int32_t>& numbers) {
      return numbers.empty() ? nullptr : numbers.data();
    };
    return {tokens.data(),  sizes.batch,    sizes.length,         given(lengths),
            given(read_at), given(context), sizes.context_length, given(context_lengths)};
  }

  template <typename Run>
  status run(sequence_task task, int threads, const Run& made) const {
    thread_pool pool(threads);
    scratch memory(sequence_workspace_bytes(model, sizes, task, pool.size()));
    return made(memory, pool);
  }

  extent output_count() const {
    if (model.readout == sequence_readout::pointer) return sizes.batch * key_len();
    return sizes.batch * model.classes *
           (model.readout == sequence_readout::every ? sizes.length : 1);
  }

  std::vector<float> forward(int threads = 1) const {
    std::vector<float> output(output_count(), quiet_nan);
    REQUIRE_EQ(run(sequence_task::forward, threads,
                   [&](workspace memory, thread_pool& pool) {
                     return sequence_forward(model, parameters.data(), inputs(), output.data(),
                                             memory, pool);
                   }),
               status::ok);
    return output;
  }

  std::vector<float> weights(int threads = 1) const {
    std::vector<float> made(model.layers * sizes.batch * model.num_heads * sizes.length * key_len(),
                            quiet_nan);
    REQUIRE_EQ(run(sequence_task::weights, threads,
                   [&](workspace memory, thread_pool& pool) {
                     return sequence_weights(model, parameters.data(), inputs(), made.data(),
                                             memory, pool);
                   }),
               status::ok);
    return made;
  }

  struct learned {
    sequence_result result;
    std::vector<float> gradients, norms;
  };

  learned gradients(int threads = 1) const {
    learned made{{},
                 std::vector<float>(parameters.size(), quiet_nan),
                 std::vector<float>(sizes.batch * sizes.length, quiet_nan)};
    REQUIRE_EQ(run(sequence_task::gradients, threads,
                   [&](workspace memory, thread_pool& pool) {
                     return sequence_loss(model, parameters.data(), inputs(), targets.data(),
                                          made.result, {made.gradients.data(), made.norms.data()},
                                          memory, pool);
                   }),
               status::ok);
    return made;
  }

  sequence_result evaluate(int threads = 1) const {
    sequence_result result;
    REQUIRE_EQ(run(sequence_task::evaluate, threads,
                   [&](workspace memory, thread_pool& pool) {
                     return sequence_loss(model, parameters.data(), inputs(), targets.data(),
                                          result, {}, memory, pool);
                   }),
               status::ok);
    return result;
  }

  plain_inputs plain(extent b) const {
    const auto cut = [](const std::vector<std::int32_t>& from, extent begin, extent count) {
      return std::vector<std::int32_t>(from.begin() + begin, from.begin() + begin + count);
    };
    plain_inputs made{
        cut(tokens, b * sizes.length, length_of(b)), {}, sizes.context_length > 0, read_of(b)};
    if (made.has_context) made.context = cut(context, b * sizes.context_length, keys_of(b));
    return made;
  }

  // As forward(), with zeros beyond each sequence's length.
  template <typename T>
  std::vector<T> plain_forward() const {
    const std::vector<T> all(parameters.begin(), parameters.end());
    std::vector<T> made(output_count());
    const extent each = output_count() / sizes.batch;
    for (extent b = 0; b < sizes.batch; ++b) {
      const plain_inputs one = plain(b);
      const auto output = plain_sequence<T>(model, all, one).output();
      std::copy(output.begin(), output.end(), made.begin() + b * each);
    }
    return made;
  }

  // all: the parameters. shift: added to x0, where given, (batch, length, embed_dim).
  double plain_loss(const std::vector<double>& all, const std::vector<double>& shift = {}) const {
    double sum = 0;
    extent count = 0;
    for (extent b = 0; b < sizes.batch; ++b) {
      const plain_inputs one = plain(b);
      std::vector<double> own;
      if (!shift.empty()) {
        const auto begin = shift.begin() + b * sizes.length * model.embed_dim;
        own.assign(begin, begin + length_of(b) * model.embed_dim);
      }
      const plain_sequence<double> made(model, all, one, own);
      const bool is_every = model.readout == sequence_readout::every;
      for (extent t = 0; t < (is_every ? length_of(b) : 1); ++t) {
        const std::int32_t target = targets[is_every ? b * sizes.length + t : b];
        if (target < 0) continue;
        sum += made.loss(target, t);
        ++count;
      }
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }
};

}  // namespace qkv::test
