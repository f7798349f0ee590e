#include <bit>
#include <string>

#include "support/sequence_case.hpp"

using namespace qkv;
using test::sequence_case;

namespace {

constexpr extent dim = 12;

sequence_model model_of(sequence_mixer mixer) {
  const bool attends = mixer == sequence_mixer::attention;
  return {.mixer = mixer,
          .positions = attends ? sequence_positions::learned : sequence_positions::none,
          .vocab = 50,
          .embed_dim = dim,
          .classes = 7,
          .layers = 2,
          .max_length = 20};
}

std::vector<float> start(const sequence_model& model, const sequence_starts& starts) {
  std::vector<float> parameters(sequence_parameter_count(model), test::quiet_nan);
  test::scratch memory(sequence_workspace_bytes(model, {}, sequence_task::start, 1));
  REQUIRE_EQ(sequence_start(model, starts, parameters.data(), memory), status::ok);
  return parameters;
}

// Of one parameter, as rows.
view<const float, 2> find(const sequence_model& model, const std::vector<float>& parameters,
                          sequence_parameter_kind kind, extent layer = 0) {
  sequence_parameter found;
  for (extent i = 0; sequence_parameter_at(model, i, found); ++i) {
    if (found.kind == kind && found.layer == layer) break;
  }
  return view<const float, 2>::contiguous(parameters.data() + found.offset,
                                          {std::max<extent>(found.rows, 1), found.columns});
}

double largest_of(const view<const float, 2>& tensor) {
  double largest = 0;
  for (extent i = 0; i < tensor.shape[0] * tensor.shape[1]; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(tensor.data[i])));
  }
  return largest;
}

}  // namespace

TEST_CASE("a sequence model's parameters lie side by side, each named once") {
  const sequence_model model = model_of(sequence_mixer::attention);
  sequence_parameter found;
  extent offset = 0, index = 0;
  std::vector<std::string> names;
  for (; sequence_parameter_at(model, index, found); ++index) {
    CHECK_EQ(found.offset, offset);
    offset += std::max<extent>(found.rows, 1) * found.columns;
    names.emplace_back(sequence_parameter_name(found.kind));
  }
  CHECK_EQ(static_cast<byte_count>(offset), sequence_parameter_count(model));
  CHECK_EQ(names, std::vector<std::string>{"embedding", "positions", "layers.#.wq", "layers.#.wk",
                                           "layers.#.wv", "layers.#.wo", "layers.#.wq",
                                           "layers.#.wk", "layers.#.wv", "layers.#.wo",
                                           "readout.weight", "readout.bias"});
  CHECK_FALSE(sequence_parameter_at(model, -1, found));
  CHECK_EQ(sequence_parameter_count({}), 0);
  CHECK_FALSE(sequence_parameter_at({}, 0, found));
}

TEST_CASE("a sequence model starts alike from the same seed, and else otherwise") {
  for (const auto mixer : {sequence_mixer::attention, sequence_mixer::rnn, sequence_mixer::lstm,
                           sequence_mixer::gru}) {
    const sequence_model model = model_of(mixer);
    const auto first = start(model, {.seed = 1});
    CHECK_EQ(start(model, {.seed = 1}), first);
    CHECK_NE(start(model, {.seed = 2}), first);
    CHECK_NE(start(model, {.seed = 1ull << 32 | 1}), first);
    for (float x : first) REQUIRE(std::isfinite(x));
  }
}

TEST_CASE("a sequence model's start has the same bits on every host") {
  const sequence_model model = model_of(sequence_mixer::gru);
  const auto made =
      start(model, {.seed = 7, .recurrent = recurrent_start::orthogonal, .chrono_length = 100});
  std::uint32_t hash = 0;
  for (float x : made) hash = hash * 31 + std::bit_cast<std::uint32_t>(x);
  CHECK_EQ(hash, 4198606365u);
}

TEST_CASE("a sequence model's weights start within their bounds, and near them") {
  using kind = sequence_parameter_kind;
  const sequence_model model = model_of(sequence_mixer::attention);
  const auto made = start(model, {});
  const auto within = [&](kind which, double bound) {
    const double largest = largest_of(find(model, made, which, 0));
    CHECK_LE(largest, bound);
    CHECK_GE(largest, 0.9 * bound);
  };
  within(kind::embedding, 0.7f);
  within(kind::positions, 0.7f);
  within(kind::wq, std::sqrt(6.0 / (2 * dim)));
  within(kind::readout_weight, std::sqrt(6.0 / (dim + 7)));
  within(kind::readout_bias, 0);
  const sequence_model cell = model_of(sequence_mixer::gru);
  const auto cells = start(cell, {});
  for (const kind which : {kind::wx, kind::wh, kind::bx, kind::bh}) {
    CHECK_LE(largest_of(find(cell, cells, which, 1)), 1 / std::sqrt(dim));
    CHECK_GE(largest_of(find(cell, cells, which, 1)), 0.8 / std::sqrt(dim));
  }
}

TEST_CASE("recurrent weights start as identities or orthogonal, each gate's block by itself") {
  const sequence_model model = model_of(sequence_mixer::lstm);
  for (const auto wanted : {recurrent_start::identity, recurrent_start::orthogonal}) {
    const auto made = start(model, {.recurrent = wanted});
    for (extent layer = 0; layer < 2; ++layer) {
      const auto wh = find(model, made, sequence_parameter_kind::wh, layer);
      for (extent block = 0; block < wh.shape[1]; block += dim) {
        for (extent i = 0; i < dim; ++i) {
          for (extent j = 0; j < dim; ++j) {
            double product = 0;
            for (extent k = 0; k < dim; ++k) product += wh(i, block + k) * wh(j, block + k);
            // Elements are rounded to floats: dim products of which each may be off by 2^-24.
            CHECK_LE(std::abs(product - (i == j)), dim * 0x1p-24);
            if (wanted == recurrent_start::identity) CHECK_EQ(wh(i, block + j), i == j ? 1 : 0);
          }
        }
      }
    }
  }
  // No two blocks are the same.
  const auto made = start(model, {.recurrent = recurrent_start::orthogonal});
  const auto wh = find(model, made, sequence_parameter_kind::wh);
  CHECK_NE(wh(0, 0), wh(0, dim));
}

TEST_CASE("the biases of gates start as asked") {
  using kind = sequence_parameter_kind;
  const sequence_model lstm = model_of(sequence_mixer::lstm);
  for (double forget : {1.0, -2.5}) {
    const auto made = start(lstm, {.forget_bias = forget});
    for (extent j = 0; j < dim; ++j) {
      CHECK_EQ(find(lstm, made, kind::bx, 1)(0, dim + j), static_cast<float>(forget));
      CHECK_EQ(find(lstm, made, kind::bh, 1)(0, dim + j), 0);
    }
  }
  const sequence_model gru = model_of(sequence_mixer::gru);
  const double longest = std::log(99.0);
  const auto of_lstm = start(lstm, {.chrono_length = 100}),
             of_gru = start(gru, {.chrono_length = 100});
  double lowest = longest, highest = 0;
  for (extent j = 0; j < dim; ++j) {
    const float keep = find(lstm, of_lstm, kind::bx)(0, dim + j);
    CHECK_EQ(find(lstm, of_lstm, kind::bx)(0, j), -keep);
    CHECK_EQ(find(lstm, of_lstm, kind::bh)(0, j), 0);
    CHECK_EQ(find(lstm, of_lstm, kind::bh)(0, dim + j), 0);
    const float update = find(gru, of_gru, kind::bx)(0, dim + j);
    CHECK_EQ(find(gru, of_gru, kind::bh)(0, dim + j), 0);
    for (float each : {keep, update}) {
      CHECK_GE(each, 0);
      CHECK_LE(each, longest);
      lowest = std::min<double>(lowest, each);
      highest = std::max<double>(highest, each);
    }
  }
  // ln u with u uniform: more than half lies in the last ln 2.
  CHECK_LT(lowest, longest - std::log(2.0));
  CHECK_GT(highest, longest - std::log(2.0));
}

TEST_CASE("a sequence model refuses starts that it cannot have") {
  const auto outcome = [](sequence_mixer mixer, const sequence_starts& starts) {
    const sequence_model model = model_of(mixer);
    std::vector<float> parameters(sequence_parameter_count(model), -1);
    test::scratch memory(sequence_workspace_bytes(model, {}, sequence_task::start, 1));
    const status made = sequence_start(model, starts, parameters.data(), memory);
    if (made != status::ok) CHECK_EQ(parameters, std::vector<float>(parameters.size(), -1));
    return made;
  };
  using enum sequence_mixer;
  CHECK_EQ(outcome(attention, {.recurrent = recurrent_start::identity}), status::invalid_argument);
  CHECK_EQ(outcome(attention, {.chrono_length = 10}), status::invalid_argument);
  CHECK_EQ(outcome(rnn, {.chrono_length = 10}), status::invalid_argument);
  CHECK_EQ(outcome(lstm, {.chrono_length = 2}), status::invalid_argument);
  CHECK_EQ(outcome(lstm, {.forget_bias = test::quiet_nan}), status::invalid_argument);
  CHECK_EQ(outcome(lstm, {.chrono_length = 3}), status::ok);
  const sequence_model model = model_of(rnn);
  std::vector<float> parameters(sequence_parameter_count(model));
  CHECK_EQ(sequence_start(model, {.recurrent = recurrent_start::orthogonal}, parameters.data(), {}),
           status::out_of_memory);
}
