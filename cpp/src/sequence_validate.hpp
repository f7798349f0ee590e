// What a sequence model's calls refuse.
#pragma once

#include "sequence_run.hpp"

namespace qkv {

// `targets`: null where there are none.
bool are_valid(const sequence_model& model, const sequence_inputs& inputs,
               const std::int32_t* targets);

}  // namespace qkv
