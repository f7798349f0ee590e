#pragma once

#include "qkv/attention.hpp"

namespace qkv {

status validate_attention(const attention_inputs& inputs, const attention_options& options,
                          const attention_outputs& outputs);

}  // namespace qkv
