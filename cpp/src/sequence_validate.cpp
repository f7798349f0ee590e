#include "sequence_validate.hpp"

namespace qkv {

namespace {

extent valid_length(const std::int32_t* lengths, extent b, extent length) {
  return lengths != nullptr ? lengths[b] : length;
}

bool all_within(const std::int32_t* numbers, extent count, extent least, extent limit) {
  return std::all_of(numbers, numbers + count,
                     [=](std::int32_t number) { return number >= least && number < limit; });
}

// tokens: (batch, length), of which the valid ones count.
bool are_tokens(const std::int32_t* tokens, const std::int32_t* lengths, extent batch,
                extent length, extent least_length, extent least, extent limit) {
  for (extent b = 0; b < batch; ++b) {
    const extent valid = valid_length(lengths, b, length);
    if (valid < least_length || valid > length ||
        !all_within(tokens + b * length, valid, least, limit)) {
      return false;
    }
  }
  return true;
}

bool is_context(const sequence_model& model, const sequence_inputs& inputs) {
  if (inputs.context == nullptr) return inputs.context_length == 0;
  return is_attention(model) && !model.causal && inputs.context_length > 0 &&
         are_tokens(inputs.context, inputs.context_lengths, inputs.batch, inputs.context_length, 0,
                    0, model.vocab);
}

bool are_places(const sequence_model& model, const sequence_inputs& inputs) {
  if (inputs.read_at == nullptr) return true;
  if (model.readout == sequence_readout::every) return false;
  for (extent b = 0; b < inputs.batch; ++b) {
    const extent valid = valid_length(inputs.lengths, b, inputs.length);
    if (inputs.read_at[b] < 0 || inputs.read_at[b] >= valid) return false;
  }
  return true;
}

// How many keys a pointer's row sees.
extent keys_of_pointer(const sequence_model& model, const sequence_inputs& inputs, extent b) {
  if (inputs.context != nullptr) {
    return valid_length(inputs.context_lengths, b, inputs.context_length);
  }
  if (model.causal && inputs.read_at != nullptr) return inputs.read_at[b] + 1;
  return valid_length(inputs.lengths, b, inputs.length);
}

bool are_targets(const sequence_model& model, const sequence_inputs& inputs,
                 const std::int32_t* targets) {
  if (model.readout == sequence_readout::last) {
    return all_within(targets, inputs.batch, 0, model.classes);
  }
  if (model.readout == sequence_readout::every) {
    return are_tokens(targets, inputs.lengths, inputs.batch, inputs.length, 0, -1, model.classes);
  }
  for (extent b = 0; b < inputs.batch; ++b) {
    if (targets[b] < 0 || targets[b] >= keys_of_pointer(model, inputs, b)) return false;
  }
  return true;
}

}  // namespace

bool are_valid(const sequence_model& model, const sequence_inputs& inputs,
               const std::int32_t* targets) {
  if (!can_be(model) || inputs.batch < 0 || inputs.length < 0) return false;
  const bool has_rows = model.positions != sequence_positions::learned ||
                        std::max(inputs.length, inputs.context_length) <= model.max_length;
  const extent least_length = model.readout == sequence_readout::every ? 0 : 1;
  return has_rows &&
         are_tokens(inputs.tokens, inputs.lengths, inputs.batch, inputs.length, least_length, 0,
                    model.vocab) &&
         is_context(model, inputs) && are_places(model, inputs) &&
         (targets == nullptr || are_targets(model, inputs, targets));
}

}  // namespace qkv
