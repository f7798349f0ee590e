// Which models can be, and where each of their parameters lies.
#pragma once

#include "qkv/recurrent.hpp"
#include "qkv/sequence_model.hpp"

namespace qkv {

bool can_be(const sequence_model& model);

inline bool is_attention(const sequence_model& model) {
  return model.mixer == sequence_mixer::attention;
}

inline bool is_pointer(const sequence_model& model) {
  return model.readout == sequence_readout::pointer;
}

// Of a mixer that is none of attention.
inline recurrent_options cell_of(const sequence_model& model) {
  const bool is_lstm = model.mixer == sequence_mixer::lstm;
  return {.cell = is_lstm                              ? recurrent_cell::lstm
                  : model.mixer == sequence_mixer::gru ? recurrent_cell::gru
                                                       : recurrent_cell::rnn};
}

inline byte_count floats_of(extent rows, extent columns) {
  return static_cast<byte_count>(rows == 0 ? 1 : rows) * static_cast<byte_count>(columns);
}

// Calls visit(parameter) for each in the order of the block, until it returns false.
template <typename Visit>
void each_parameter(const sequence_model& model, const Visit& visit) {
  using kind = sequence_parameter_kind;
  const extent dim = model.embed_dim;
  // In 64 bits: a model may be larger than memory.
  byte_count offset = 0;
  bool goes_on = true;
  const auto add = [&](kind which, extent layer, extent rows, extent columns, bool exists = true) {
    if (!exists || !goes_on) return;
    goes_on = visit(sequence_parameter{which, layer, rows, columns, static_cast<extent>(offset)});
    offset += floats_of(rows, columns);
  };
  add(kind::embedding, 0, model.vocab, dim);
  add(kind::positions, 0, model.max_length, dim, model.positions == sequence_positions::learned);
  for (extent layer = 0; layer < model.layers; ++layer) {
    if (is_attention(model)) {
      const bool points = is_pointer(model) && layer == model.layers - 1;
      const bool projects = model.ties != sequence_ties::all;
      add(kind::wq, layer, dim, dim, projects);
      add(kind::wk, layer, dim, dim, projects && model.ties != sequence_ties::query_key);
      add(kind::wv, layer, dim, dim,
          projects && model.ties != sequence_ties::value_input && !points);
      add(kind::wo, layer, dim, dim, !points);
    } else {
      const extent columns = gates_of(cell_of(model).cell) * dim;
      add(kind::wx, layer, dim, columns);
      add(kind::wh, layer, dim, columns);
      add(kind::bx, layer, 0, columns);
      add(kind::bh, layer, 0, columns);
    }
  }
  add(kind::readout_weight, 0, dim, model.classes, !is_pointer(model));
  add(kind::readout_bias, 0, 0, model.classes, !is_pointer(model));
}

}  // namespace qkv
