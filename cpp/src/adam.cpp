#include "qkv/adam.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/adam_row.hpp"

namespace qkv {

namespace {

// Elements of one task.
constexpr extent adam_block = 4096;

// Below this a rounded square is a float yet.
constexpr double square_limit = 0x1p126;

extent blocks(extent count) { return (count + adam_block - 1) / adam_block; }

bool are_valid(const adam_options& options) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  const auto is_size = [](double size) { return size >= 0 && std::isfinite(size); };
  return is_beta(options.beta1) && is_beta(options.beta2) && is_size(options.learning_rate) &&
         is_size(options.epsilon) && is_size(options.weight_decay) && options.clip > 0;
}

void sum_blocks(const float* x, extent count, double* sums, thread_pool& pool) {
  pool.run(blocks(count), [&](extent block, int) {
    const extent begin = block * adam_block;
    sums[block] = kernels::sum_of_squares(x + begin, std::min(adam_block, count - begin));
  });
}

// The first element that has, times scale, a square of at least `limit`, or is NaN; -1: none. A
// block whose sum is below has none.
extent first_beyond(const float* x, extent count, double scale, double limit, const double* sums) {
  for (extent block = 0; block < blocks(count); ++block) {
    if (sums[block] * scale * scale < limit) continue;
    const extent end = std::min(count, (block + 1) * adam_block);
    for (extent i = block * adam_block; i < end; ++i) {
      const double scaled = x[i] * scale;
      if (!(scaled * scaled < limit)) return i;
    }
  }
  return -1;
}

kernels::adam_factors factors_of(const adam_options& options, double gradient_scale,
                                 double beta1_power, double beta2_power) {
  return {.gradient_scale = static_cast<float>(gradient_scale),
          .beta1 = static_cast<float>(options.beta1),
          .rest1 = static_cast<float>(1 - options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .rest2 = static_cast<float>(1 - options.beta2),
          .rate = static_cast<float>(options.learning_rate / (1 - beta1_power)),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - beta2_power)),
          .epsilon = static_cast<float>(options.epsilon),
          .decay = static_cast<float>(options.learning_rate * options.weight_decay)};
}

}  // namespace

byte_count adam_workspace_bytes(extent count) { return workspace::bytes_for(blocks(count), 2); }

status adam_step(float* parameters, const float* gradients, extent count,
                 const adam_options& options, adam_state& state, adam_fault& fault,
                 workspace memory, thread_pool& pool) {
  fault = {};
  if (!are_valid(options)) return status::invalid_argument;
  double* sums = memory.doubles(blocks(count));
  if (sums == nullptr) return status::out_of_memory;

  constexpr double infinity = std::numeric_limits<double>::infinity();
  sum_blocks(parameters, count, sums, pool);
  fault.element = first_beyond(parameters, count, 1, infinity, sums);
  fault.in_parameters = fault.element >= 0;
  if (fault.in_parameters) return status::invalid_argument;

  sum_blocks(gradients, count, sums, pool);
  double squares = 0;
  for (extent block = 0; block < blocks(count); ++block) squares += sums[block];
  const double norm = std::sqrt(squares);
  const double scale = norm > options.clip ? options.clip / norm : 1;
  fault.element = first_beyond(gradients, count, scale, square_limit, sums);
  if (fault.element >= 0) return status::invalid_argument;

  state.beta1_power *= options.beta1;
  state.beta2_power *= options.beta2;
  const kernels::adam_factors factors =
      factors_of(options, scale, state.beta1_power, state.beta2_power);
  pool.run(blocks(count), [&](extent block, int) {
    const extent begin = block * adam_block;
    kernels::adam_row(parameters + begin, gradients + begin, state.mean + begin,
                      state.square + begin, std::min(adam_block, count - begin), factors);
  });
  return status::ok;
}

}  // namespace qkv
