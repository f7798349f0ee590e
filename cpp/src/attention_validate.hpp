#pragma once

#include "qkv/attention.hpp"

namespace qkv {

status validate_attention(const attention_inputs& inputs, const attention_options& options,
                          const attention_outputs& outputs);
status validate_attention_backward(const view<const float, 4>& d_out,
                                   const attention_inputs& inputs, const attention_options& options,
                                   const attention_gradients& gradients);

}  // namespace qkv
