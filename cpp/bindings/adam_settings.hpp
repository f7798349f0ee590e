// As web/src/adam.ts writes them: the options, and what goes from step to step.
#pragma once

#include "qkv/adam.hpp"

namespace qkv::bindings {

struct adam_settings {
  adam_options options;
  double beta1_power;
  double beta2_power;
};

}  // namespace qkv::bindings
