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

// The parameters of a model that can be, in the order of the block:
//
//   for (parameter_walk walk(model); walk.next();) use(walk.at);
class parameter_walk {
 public:
  explicit parameter_walk(const sequence_model& model) : model_(model) {}

  // False: there are no more.
  bool next();

  sequence_parameter at;

 private:
  bool exists() const;
  void set_shape();

  const sequence_model& model_;
  // In 64 bits: a model may be larger than memory.
  byte_count end_ = 0;
  bool begun_ = false;
};

// False: the model has none of this kind in this layer.
bool find_parameter(const sequence_model& model, sequence_parameter_kind kind, extent layer,
                    sequence_parameter& found);

}  // namespace qkv
