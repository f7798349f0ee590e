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
