// The sequence model as a plain composition of the reference loops, one sequence at a time. T is
// float or double.
#pragma once

#include <cmath>
#include <vector>

#include "qkv/qkv.hpp"
#include "qkv/reference.hpp"
#include "qkv/reference_recurrent.hpp"

namespace qkv::test {

// What one sequence consists of; the valid tokens alone.
struct plain_inputs {
  std::vector<std::int32_t> tokens, context;
  bool has_context = false;
  extent read_at = 0;
};

template <typename T>
class plain_sequence {
 public:
  using rows = std::vector<T>;

  // x0_shift: added to x0, where given.
  plain_sequence(const sequence_model& model, const std::vector<T>& parameters,
                 const plain_inputs& inputs, const rows& x0_shift = {})
      : model_(model), parameters_(parameters), inputs_(inputs) {
    x_ = embed(inputs.tokens);
    for (std::size_t i = 0; i < x0_shift.size(); ++i) x_[i] += x0_shift[i];
    if (inputs.has_context) context_ = embed(inputs.context);
    for (extent layer = 0; layer < model.layers; ++layer) {
      model.mixer == sequence_mixer::attention ? attend(layer) : recur(layer);
    }
  }

  // (num_heads, length, key length) of each layer.
  const std::vector<rows>& weights() const { return weights_; }

  // Of all rows, (length, classes).
  rows logits() const {
    const extent length = static_cast<extent>(x_.size()) / model_.embed_dim;
    return reference::linear<T>(x_, of(kind::readout_weight), of(kind::readout_bias), length,
                                model_.embed_dim, model_.classes);
  }

  // What a call gives for this sequence.
  rows output() const {
    if (model_.readout == sequence_readout::pointer) return pointed();
    const rows all = logits();
    if (model_.readout == sequence_readout::every) return all;
    const auto row = all.begin() + inputs_.read_at * model_.classes;
    return {row, row + model_.classes};
  }

  // Minus the log of what the target is given, for the output's row.
  T loss(std::int32_t target, extent row = 0) const {
    if (model_.readout == sequence_readout::pointer) return -std::log(pointed()[target]);
    rows all = output();
    T* logits = all.data() + row * model_.classes;
    const T logit = logits[target];
    return reference::softmax_row(logits, model_.classes) - logit;
  }

 private:
  using kind = sequence_parameter_kind;

  rows of(kind which, extent layer = 0) const {
    sequence_parameter found;
    for (extent i = 0; sequence_parameter_at(model_, i, found); ++i) {
      if (found.kind != which || found.layer != layer) continue;
      const auto begin = parameters_.begin() + found.offset;
      return {begin, begin + std::max<extent>(found.rows, 1) * found.columns};
    }
    return {};
  }

  rows embed(const std::vector<std::int32_t>& tokens) const {
    const extent dim = model_.embed_dim;
    const rows table = of(kind::embedding), positions = of(kind::positions);
    rows made;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (extent i = 0; i < dim; ++i) {
        T x = table[tokens[t] * dim + i];
        if (model_.positions == sequence_positions::learned) x += positions[t * dim + i];
        if (model_.positions == sequence_positions::sinusoidal) {
          const double angle =
              static_cast<double>(t) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / dim);
          x += static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
        }
        made.push_back(x);
      }
    }
    return made;
  }

  rows project(const rows& x, const rows& weight) const {
    const extent dim = model_.embed_dim;
    if (weight.empty()) return x;
    return reference::linear<T>(x, weight, {}, static_cast<extent>(x.size()) / dim, dim, dim);
  }

  void turn(rows& x) const {
    if (model_.positions != sequence_positions::rotary) return;
    const extent dim = model_.embed_dim, head_dim = dim / model_.num_heads;
    for (std::size_t at = 0; at < x.size(); at += head_dim) {
      std::vector<T> angles(head_dim / 2);
      for (extent i = 0; i < head_dim / 2; ++i) {
        angles[i] = static_cast<T>(static_cast<double>(at / dim) /
                                   std::pow(10000.0, 2.0 * static_cast<double>(i) / head_dim));
      }
      reference::rotate_row(x.data() + at, angles, false);
    }
  }

  // (length, heads, head_dim) to (heads, length, head_dim), and back.
  rows swap_axes(const rows& x, extent first, extent second) const {
    const extent size = model_.embed_dim / model_.num_heads;
    rows made(x.size());
    for (extent i = 0; i < first * second; ++i) {
      std::copy_n(x.begin() + i * size, size,
                  made.begin() + (i % second * first + i / second) * size);
    }
    return made;
  }

  void attend(extent layer) {
    const extent dim = model_.embed_dim, heads = model_.num_heads;
    const rows& y = inputs_.has_context ? context_ : x_;
    const bool points = model_.readout == sequence_readout::pointer && layer == model_.layers - 1;
    const bool one_projection = model_.ties == sequence_ties::query_key;
    rows query = project(x_, of(kind::wq, layer));
    rows key = project(y, of(one_projection ? kind::wq : kind::wk, layer));
    const rows value = project(y, of(kind::wv, layer));
    turn(query);
    turn(key);
    const extent length = static_cast<extent>(x_.size()) / dim;
    const extent key_len = static_cast<extent>(y.size()) / dim;
    reference::attention_rules<T> rules;
    rules.scale = 1 / std::sqrt(static_cast<T>(dim / heads));
    if (model_.causal) rules.visible = [](extent, extent, extent i, extent j) { return j <= i; };
    const auto made = reference::attention<T>(
        swap_axes(query, length, heads), swap_axes(key, key_len, heads),
        swap_axes(value, key_len, heads),
        {1, heads, heads, length, key_len, dim / heads, dim / heads}, rules);
    weights_.push_back(made.weights);
    if (!points) add_layer(project(swap_axes(made.out, heads, length), of(kind::wo, layer)));
  }

  void recur(extent layer) {
    const extent dim = model_.embed_dim;
    reference::recurrent_state<T> state{rows(dim), rows(dim)};
    const reference::recurrent_weights<T> weights{
        of(kind::wx, layer), of(kind::wh, layer), of(kind::bx, layer), of(kind::bh, layer), {}};
    recurrent_options options;
    if (model_.mixer == sequence_mixer::lstm) options.cell = recurrent_cell::lstm;
    if (model_.mixer == sequence_mixer::gru) options.cell = recurrent_cell::gru;
    add_layer(reference::recurrent(x_, dim, static_cast<extent>(x_.size()) / dim, false, weights,
                                   options, state));
  }

  void add_layer(rows made) {
    for (std::size_t i = 0; model_.residual && i < made.size(); ++i) made[i] += x_[i];
    x_ = std::move(made);
  }

  // The weights of the row that is read, averaged over the heads.
  rows pointed() const {
    const extent length = static_cast<extent>(x_.size()) / model_.embed_dim;
    const rows& all = weights_.back();
    const extent key_len = static_cast<extent>(all.size()) / (length * model_.num_heads);
    rows mean(key_len);
    for (extent h = 0; h < model_.num_heads; ++h) {
      for (extent j = 0; j < key_len; ++j) {
        mean[j] +=
            all[(h * length + inputs_.read_at) * key_len + j] / static_cast<T>(model_.num_heads);
      }
    }
    return mean;
  }

  const sequence_model& model_;
  const std::vector<T>& parameters_;
  const plain_inputs& inputs_;
  rows x_, context_;
  std::vector<rows> weights_;
};

}  // namespace qkv::test
