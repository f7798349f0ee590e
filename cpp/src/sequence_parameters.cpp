#include "sequence_parameters.hpp"

namespace qkv {

namespace {

bool is_axis(extent length) { return length >= 1 && length <= largest_sequence_axis; }

bool can_attend(const sequence_model& model) {
  if (model.num_heads < 1 || model.embed_dim % model.num_heads != 0) return false;
  return model.positions != sequence_positions::rotary ||
         model.embed_dim / model.num_heads % 2 == 0;
}

// What only attention has.
bool asks_attention(const sequence_model& model) {
  return model.causal || model.ties != sequence_ties::none || is_pointer(model) ||
         model.positions == sequence_positions::rotary;
}

}  // namespace

bool can_be(const sequence_model& model) {
  const bool has_axes =
      is_axis(model.vocab) && is_axis(model.embed_dim) &&
      (is_pointer(model) || is_axis(model.classes)) &&
      (model.positions != sequence_positions::learned || is_axis(model.max_length));
  if (!has_axes || model.layers < 1 || model.layers > most_sequence_layers) return false;
  return is_attention(model) ? can_attend(model) : !asks_attention(model);
}

const char* sequence_parameter_name(sequence_parameter_kind kind) {
  switch (kind) {
#define QKV_SEQUENCE_PARAMETER_CASE(name, text) \
  case sequence_parameter_kind::name:           \
    return text;
    QKV_SEQUENCE_PARAMETER_LIST(QKV_SEQUENCE_PARAMETER_CASE)
#undef QKV_SEQUENCE_PARAMETER_CASE
  }
  return "";
}

bool sequence_parameter_at(const sequence_model& model, extent index, sequence_parameter& found) {
  if (index < 0 || !can_be(model)) return false;
  bool is_there = false;
  each_parameter(model, [&](const sequence_parameter& parameter) {
    is_there = index-- == 0;
    if (is_there) found = parameter;
    return !is_there;
  });
  return is_there;
}

byte_count sequence_parameter_count(const sequence_model& model) {
  if (!can_be(model)) return 0;
  byte_count count = 0;
  each_parameter(model, [&](const sequence_parameter& parameter) {
    count += floats_of(parameter.rows, parameter.columns);
    return true;
  });
  return count;
}

}  // namespace qkv
