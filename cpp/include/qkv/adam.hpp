// Adam: steps down a gradient, each parameter's by its own measure.
#pragma once

#include <limits>

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

struct adam_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;    // in [0, 1): what stays of the mean of the gradients
  double beta2 = 0.999;  // likewise, of the mean of their squares
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip = std::numeric_limits<double>::infinity();  // > 0: the gradients' largest norm
};

// What goes from step to step. mean, square: count floats each, 0 before the first step.
struct adam_state {
  float* mean;
  float* square;
  double beta1_power = 1;  // beta1 and beta2 to the power of the steps made
  double beta2_power = 1;
};

// Where a step could not be made. element: -1 where it could.
struct adam_fault {
  bool in_parameters = false;  // else in the gradients
  extent element = -1;
};

byte_count adam_workspace_bytes(extent count);

// One step of Adam (Kingma & Ba, 2015), number t, with decoupled weight decay (Loshchilov & Hutter,
// "Decoupled Weight Decay Regularization", 2019), in place:
//
//   g = gradients, shrunk to the norm `clip` where the norm of all of them is larger
//   mean = beta1 mean + (1 - beta1) g,  square = beta2 square + (1 - beta2) g^2
//   parameters -= learning_rate * weight_decay * parameters
//   parameters -= learning_rate * (mean / (1 - beta1^t))
//                 / (sqrt(square / (1 - beta2^t)) + epsilon)
//
// Numbers whose squares would be denormal count as 0: gradients below 2^-50, and what is left of
// the state below 2^-124. Where root and epsilon are both 0 the parameter stays.
//
// parameters, gradients: count floats. Errors, with everything untouched: invalid_argument
// (options; or a parameter that is not finite, or a gradient that, clipped, is not below 2^64,
// where its square ends: `fault` says which), out_of_memory (a workspace too small).
status adam_step(float* parameters, const float* gradients, extent count,
                 const adam_options& options, adam_state& state, adam_fault& fault,
                 workspace memory, thread_pool& pool);

}  // namespace qkv
