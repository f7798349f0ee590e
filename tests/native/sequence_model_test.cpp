#include "support/gradcheck.hpp"
#include "support/sequence_case.hpp"

using namespace qkv;
using test::sequence_case;

namespace {

using mixer = sequence_mixer;
using positions = sequence_positions;
using ties = sequence_ties;
using readout = sequence_readout;

sequence_model small(mixer which, readout wanted) {
  return {.mixer = which,
          .readout = wanted,
          .residual = which == mixer::attention,
          .vocab = 6,
          .embed_dim = 4,
          .classes = 5,
          .layers = 2};
}

// Every option of attention with each readout, and sequences of all kinds.
std::vector<sequence_case> attention_cases() {
  std::vector<sequence_case> made;
  std::uint64_t seed = 0;
  for (const readout wanted : {readout::last, readout::every, readout::pointer}) {
    for (const ties tied : {ties::none, ties::query_key, ties::value_input, ties::all}) {
      for (const positions where :
           {positions::none, positions::sinusoidal, positions::learned, positions::rotary}) {
        const bool is_odd = ++seed % 2 != 0, has_context = seed % 3 == 0;
        sequence_model model = small(mixer::attention, wanted);
        model.positions = where;
        model.ties = tied;
        model.num_heads = is_odd ? 2 : 1;
        model.layers = 1 + static_cast<extent>(seed % 5 / 2);
        model.causal = !has_context && seed % 4 < 2;
        model.residual = seed % 7 != 0;
        model.max_length = where == positions::learned ? 9 : 0;
        sequence_case one(model, {3, 5, has_context ? 4 : 0}, seed);
        if (seed % 5 < 3) one.set_ragged();
        if (wanted != readout::every && seed % 4 > 1) one.set_read_at();
        if (wanted == readout::every) one.skip_answers();
        if (wanted == readout::pointer) one.set_places();
        made.push_back(one);
      }
    }
  }
  return made;
}

std::vector<sequence_case> cell_cases() {
  std::vector<sequence_case> made;
  std::uint64_t seed = 0;
  for (const mixer which : {mixer::rnn, mixer::lstm, mixer::gru}) {
    for (const readout wanted : {readout::last, readout::every}) {
      for (const positions where : {positions::none, positions::sinusoidal, positions::learned}) {
        sequence_model model = small(which, wanted);
        model.positions = where;
        model.layers = 1 + static_cast<extent>(++seed % 3);
        model.residual = seed % 4 == 0;
        model.max_length = where == positions::learned ? 5 : 0;
        sequence_case one(model, {3, 5, 0}, seed);
        if (seed % 5 < 3) one.set_ragged();
        if (wanted == readout::last && seed % 2 == 0) one.set_read_at();
        if (wanted == readout::every) one.skip_answers();
        made.push_back(one);
      }
    }
  }
  return made;
}

// Of one parameter: the gradient along a random direction is what the plain loss, in double, does
// along it. All operations are held to their own accuracy elsewhere; here wrong terms must show,
// which are as large as the gradient, and not the few hundred roundings of a float between the two.
void check_direction(const sequence_case& one, const std::vector<float>& gradients,
                     const sequence_parameter& parameter, std::uint64_t seed) {
  test::number_source numbers(seed);
  const extent count = std::max<extent>(parameter.rows, 1) * parameter.columns;
  const auto direction = test::to_double(numbers.floats(count));
  const double step = 1e-5;
  const auto loss_at = [&](double distance) {
    auto moved = test::to_double(one.parameters);
    for (extent i = 0; i < count; ++i) moved[parameter.offset + i] += distance * direction[i];
    return one.plain_loss(moved);
  };
  double along = 0, squares = 0;
  for (extent i = 0; i < count; ++i) {
    along += gradients[parameter.offset + i] * direction[i];
    squares += gradients[parameter.offset + i] * gradients[parameter.offset + i];
  }
  const double expected = (loss_at(step) - loss_at(-step)) / (2 * step);
  CAPTURE(std::string(sequence_parameter_name(parameter.kind)));
  CAPTURE(parameter.layer);
  CHECK_LE(std::abs(along - expected), 1e-4 * std::sqrt(squares) + 1e-6);
}

void check_case(const sequence_case& one) {
  CAPTURE(static_cast<int>(one.model.mixer));
  CAPTURE(static_cast<int>(one.model.readout));
  CAPTURE(static_cast<int>(one.model.ties));
  CAPTURE(static_cast<int>(one.model.positions));
  CAPTURE(one.model.layers);
  CAPTURE(one.sizes.context_length);
  test::check_near(one.forward(), one.plain_forward<float>(), one.plain_forward<double>());
  const auto made = one.gradients();
  CHECK_EQ(made.result.loss,
           doctest::Approx(one.plain_loss(test::to_double(one.parameters))).epsilon(1e-5));
  sequence_parameter parameter;
  for (extent i = 0; sequence_parameter_at(one.model, i, parameter); ++i) {
    check_direction(one, made.gradients, parameter, static_cast<std::uint64_t>(i));
  }
  const sequence_result evaluated = one.evaluate();
  CHECK_EQ(evaluated.loss, made.result.loss);
  CHECK_EQ(evaluated.accuracy, made.result.accuracy);
}

}  // namespace

TEST_CASE("sequence model of attention: numbers and gradients as the plain composition") {
  for (const sequence_case& one : attention_cases()) check_case(one);
}

TEST_CASE("sequence model of recurrent cells: numbers and gradients as the plain composition") {
  for (const sequence_case& one : cell_cases()) check_case(one);
}

TEST_CASE("sequence model: the norms of the gradient by each row x0") {
  std::vector<sequence_case> cases = attention_cases();
  for (sequence_case& one : cell_cases()) cases.push_back(std::move(one));
  for (std::size_t i = 0; i < cases.size(); i += 5) {
    const sequence_case& one = cases[i];
    const extent dim = one.model.embed_dim, rows = one.sizes.batch * one.sizes.length;
    const auto norms = one.gradients().norms;
    const auto all = test::to_double(one.parameters);
    std::vector<double> shift(rows * dim), expected(rows);
    const double step = 1e-5;
    for (extent at = 0; at < rows * dim; ++at) {
      shift[at] = step;
      const double above = one.plain_loss(all, shift);
      shift[at] = -step;
      const double slope = (above - one.plain_loss(all, shift)) / (2 * step);
      shift[at] = 0;
      expected[at / dim] += slope * slope;
    }
    CAPTURE(i);
    for (extent row = 0; row < rows; ++row) {
      // As check_direction().
      CHECK_LE(std::abs(norms[row] - std::sqrt(expected[row])), 1e-4 * norms[row] + 1e-6);
    }
  }
}

TEST_CASE("sequence model: the weights of every layer, 0 where no key is") {
  for (const sequence_case& one : attention_cases()) {
    const auto& [batch, length, context_length] = one.sizes;
    const extent heads = one.model.num_heads, key_len = one.key_len();
    const auto made = one.weights();
    const std::vector<float> plain_parameters = one.parameters;
    const auto exact_parameters = test::to_double(one.parameters);
    std::vector<float> valid, plain;
    std::vector<double> exact;
    for (extent at = 0; at < one.model.layers * batch; ++at) {
      const extent layer = at / batch, b = at % batch, keys = one.keys_of(b);
      const test::plain_inputs inputs = one.plain(b);
      const auto add = [&](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      add(plain, test::plain_sequence<float>(one.model, plain_parameters, inputs).weights()[layer]);
      add(exact,
          test::plain_sequence<double>(one.model, exact_parameters, inputs).weights()[layer]);
      for (extent row = 0; row < heads * length; ++row) {
        const auto first = made.begin() + (at * heads * length + row) * key_len;
        const extent seen = row % length < one.length_of(b) ? keys : 0;
        valid.insert(valid.end(), first, first + seen);
        CHECK(std::all_of(first + seen, first + key_len, [](float weight) { return weight == 0; }));
      }
    }
    test::check_near(valid, plain, exact);
  }
}

TEST_CASE("sequence model: no answers have the loss 0 and gradients 0") {
  for (const mixer which : {mixer::attention, mixer::gru}) {
    sequence_case one(small(which, readout::every), {2, 3, 0});
    std::fill(one.targets.begin(), one.targets.end(), -1);
    const auto made = one.gradients();
    CHECK_EQ(made.result.loss, 0);
    CHECK_EQ(made.result.accuracy, 0);
    CHECK_EQ(made.gradients, std::vector<float>(one.parameters.size(), 0.0f));
    // Of sequences without a token too.
    one.lengths = {0, 0};
    CHECK_EQ(one.gradients().gradients, made.gradients);
    CHECK_EQ(one.forward(), std::vector<float>(one.output_count(), 0.0f));
  }
}

TEST_CASE("sequence model: accuracy is the share of targets that come first, and first of equals") {
  sequence_model model = small(mixer::attention, readout::every);
  sequence_case one(model, {1, 4, 0});
  std::fill(one.parameters.begin(), one.parameters.end(), 0.0f);
  one.targets = {0, 1, 0, -1};
  CHECK_EQ(one.evaluate().accuracy, doctest::Approx(2.0 / 3));
  // Weights of one quarter each.
  model.readout = readout::pointer;
  sequence_case pointer(model, {2, 4, 0});
  std::fill(pointer.parameters.begin(), pointer.parameters.end(), 0.0f);
  pointer.targets = {0, 3};
  CHECK_EQ(pointer.evaluate().accuracy, 0.5);
  CHECK_EQ(pointer.evaluate().loss, doctest::Approx(std::log(4.0)));
}

TEST_CASE("sequence model: a pointer's weight that underflows has a finite loss and gradients") {
  sequence_model model = small(mixer::attention, readout::pointer);
  model.layers = 1;
  sequence_case one(model, {1, 2, 0});
  one.tokens = {0, 1};
  // Scores of 0 and 2e4 for the two keys.
  for (float& x : one.parameters) x = 0;
  for (extent i = 0; i < 4; ++i) one.parameters[4 + i] = 100;
  for (extent i = 0; i < 4; ++i) one.parameters[24 + 5 * i] = one.parameters[40 + 5 * i] = 1;
  one.targets = {0};
  const auto made = one.gradients();
  CHECK_EQ(made.result.loss, doctest::Approx(100 * std::log(2.0)));
  for (float gradient : made.gradients) REQUIRE(std::isfinite(gradient));
}
