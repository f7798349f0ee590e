#include <cmath>

#include "sequence_parameters.hpp"
#include "sequence_random.hpp"

namespace qkv {

namespace {

bool can_start(const sequence_model& model, const sequence_starts& starts) {
  const bool is_gated = model.mixer == sequence_mixer::lstm || model.mixer == sequence_mixer::gru;
  return can_be(model) && std::isfinite(starts.forget_bias) &&
         (starts.recurrent == recurrent_start::uniform || !is_attention(model)) &&
         (starts.chrono_length == 0 || (is_gated && starts.chrono_length >= 3));
}

void fill_uniform(float* to, const sequence_parameter& parameter, double bound,
                  sequence_random& random) {
  const auto count = static_cast<extent>(floats_of(parameter.rows, parameter.columns));
  for (extent i = 0; i < count; ++i) to[i] = static_cast<float>(random.within(bound));
}

// Half the width of the uniform distribution that a parameter starts from. Projections and readout:
// Glorot & Bengio, 2010, section 4.2.1, so that numbers neither grow nor shrink from layer to
// layer. Cells: as in PyTorch. Embedding and learned positions have a standard deviation of 0.4, by
// trial: at 1 tokens drown sinusoidal positions, of 0.7, and attention over 64 tokens and more does
// not learn where to look; at 0.2 recurrent cells learn parity late or not at all.
double bound_of(const sequence_model& model, const sequence_parameter& parameter) {
  switch (parameter.kind) {
    case sequence_parameter_kind::embedding:
    case sequence_parameter_kind::positions:
      return 0.7;
    case sequence_parameter_kind::readout_bias:
      return 0;
    case sequence_parameter_kind::wx:
    case sequence_parameter_kind::wh:
    case sequence_parameter_kind::bx:
    case sequence_parameter_kind::bh:
      return 1 / std::sqrt(static_cast<double>(model.embed_dim));
    default:
      return std::sqrt(6.0 / static_cast<double>(parameter.rows + parameter.columns));
  }
}

// Rows of normal numbers, each made orthogonal to those before it (Gram & Schmidt; twice, since
// once leaves what cancels) and of length 1: evenly distributed among all orthogonal matrices.
void make_orthogonal(double* rows, extent dim, sequence_random& random) {
  for (extent i = 0; i < dim; ++i) {
    double* row = rows + i * dim;
    for (extent j = 0; j < dim; ++j) row[j] = random.normal();
    for (extent k = 0; k < 2 * i; ++k) {
      const double* other = rows + k % i * dim;
      double product = 0;
      for (extent j = 0; j < dim; ++j) product += row[j] * other[j];
      for (extent j = 0; j < dim; ++j) row[j] -= product * other[j];
    }
    double squares = 0;
    for (extent j = 0; j < dim; ++j) squares += row[j] * row[j];
    for (extent j = 0; j < dim; ++j) row[j] /= std::sqrt(squares);
  }
}

void fill_blocks(view<float, 2> wh, recurrent_start wanted, double* square,
                 sequence_random& random) {
  const auto [dim, columns] = wh.shape;
  for (extent block = 0; block < columns; block += dim) {
    if (wanted == recurrent_start::orthogonal) make_orthogonal(square, dim, random);
    for (extent i = 0; i < dim; ++i) {
      for (extent j = 0; j < dim; ++j) {
        wh(i, block + j) = wanted == recurrent_start::orthogonal
                               ? static_cast<float>(square[i * dim + j])
                               : static_cast<float>(i == j);
      }
    }
  }
}

// The gates that keep and that let in, of i f g o and r z n.
void set_gates(const sequence_model& model, const sequence_starts& starts, bool is_bx, float* bias,
               sequence_random& random) {
  const extent dim = model.embed_dim;
  const bool is_lstm = model.mixer == sequence_mixer::lstm;
  for (extent j = 0; j < dim; ++j) {
    double keep = starts.forget_bias;
    if (starts.chrono_length > 0 && is_bx) {
      const auto longest = static_cast<double>(starts.chrono_length - 1);
      keep = kernels::logarithm(1 + (longest - 1) * random.uniform());
    }
    bias[dim + j] = is_bx ? static_cast<float>(keep) : 0.0f;
    if (is_lstm && starts.chrono_length > 0) bias[j] = is_bx ? static_cast<float>(-keep) : 0.0f;
  }
}

void fill(const sequence_model& model, const sequence_starts& starts,
          const sequence_parameter& parameter, float* to, double* square, sequence_random& random) {
  using kind = sequence_parameter_kind;
  fill_uniform(to, parameter, bound_of(model, parameter), random);
  if (parameter.kind == kind::wh && starts.recurrent != recurrent_start::uniform) {
    fill_blocks(view<float, 2>::contiguous(to, {parameter.rows, parameter.columns}),
                starts.recurrent, square, random);
  }
  const bool is_bias = parameter.kind == kind::bx || parameter.kind == kind::bh;
  if (is_bias && (model.mixer == sequence_mixer::lstm || starts.chrono_length > 0)) {
    set_gates(model, starts, parameter.kind == kind::bx, to, random);
  }
}

}  // namespace

status sequence_start(const sequence_model& model, const sequence_starts& starts, float* parameters,
                      workspace memory) {
  if (!can_start(model, starts)) return status::invalid_argument;
  const bool is_orthogonal = starts.recurrent == recurrent_start::orthogonal;
  double* square = is_orthogonal ? memory.doubles(model.embed_dim * model.embed_dim) : nullptr;
  if (is_orthogonal && square == nullptr) return status::out_of_memory;
  sequence_random random(starts.seed);
  for (parameter_walk walk(model); walk.next();) {
    fill(model, starts, walk.at, parameters + walk.at.offset, square, random);
  }
  return status::ok;
}

}  // namespace qkv
