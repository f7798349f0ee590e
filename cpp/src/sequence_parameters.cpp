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

bool parameter_walk::exists() const {
  using enum sequence_parameter_kind;
  if (at.kind == embedding) return true;
  if (at.kind == positions) return model_.positions == sequence_positions::learned;
  if (at.kind >= readout_weight) return !is_pointer(model_);
  const bool is_projection = at.kind <= wo;
  if (is_projection != is_attention(model_)) return false;
  const sequence_ties ties = model_.ties;
  const bool points = is_pointer(model_) && at.layer == model_.layers - 1;
  if (at.kind == wq) return ties != sequence_ties::all;
  if (at.kind == wk) return ties == sequence_ties::none || ties == sequence_ties::value_input;
  if (at.kind == wv) return !points && ties <= sequence_ties::query_key;
  return !is_projection || !points;
}

void parameter_walk::set_shape() {
  using enum sequence_parameter_kind;
  const extent dim = model_.embed_dim;
  const extent gates = is_attention(model_) ? 1 : gates_of(cell_of(model_).cell);
  const bool is_readout = at.kind >= readout_weight;
  const bool has_one_axis = at.kind == bx || at.kind == bh || at.kind == readout_bias;
  at.rows = at.kind == embedding   ? model_.vocab
            : at.kind == positions ? model_.max_length
            : has_one_axis         ? 0
                                   : dim;
  at.columns = is_readout ? model_.classes : at.kind <= positions ? dim : gates * dim;
}

bool parameter_walk::next() {
  using enum sequence_parameter_kind;
  do {
    if (at.kind == readout_bias) return false;
    if (!begun_) {
      begun_ = true;
    } else if (at.kind == bh) {
      const bool goes_on = ++at.layer < model_.layers;
      at.kind = goes_on ? wq : readout_weight;
      if (!goes_on) at.layer = 0;
    } else {
      at.kind = static_cast<sequence_parameter_kind>(static_cast<int>(at.kind) + 1);
    }
  } while (!exists());
  set_shape();
  at.offset = static_cast<extent>(end_);
  end_ += floats_of(at.rows, at.columns);
  return true;
}

bool find_parameter(const sequence_model& model, sequence_parameter_kind kind, extent layer,
                    sequence_parameter& found) {
  for (parameter_walk walk(model); walk.next();) {
    found = walk.at;
    if (found.kind == kind && found.layer == layer) return true;
  }
  return false;
}

bool sequence_parameter_at(const sequence_model& model, extent index, sequence_parameter& found) {
  if (index < 0 || !can_be(model)) return false;
  for (parameter_walk walk(model); walk.next();) {
    found = walk.at;
    if (index-- == 0) return true;
  }
  return false;
}

byte_count sequence_parameter_count(const sequence_model& model) {
  if (!can_be(model)) return 0;
  byte_count count = 0;
  for (parameter_walk walk(model); walk.next();) count += floats_of(walk.at.rows, walk.at.columns);
  return count;
}

}  // namespace qkv
