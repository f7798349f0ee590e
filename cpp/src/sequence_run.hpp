// What the parts of a sequence model's call share.
#pragma once

#include <algorithm>

#include "sequence_parameters.hpp"

namespace qkv {

// What a task keeps, and where it stops.
struct sequence_plan {
  sequence_model model;
  sequence_sizes sizes;
  sequence_task task;

  // Rows of each layer are kept for the backward pass.
  bool keeps() const { return task == sequence_task::gradients || task == sequence_task::train; }
  bool answers() const { return keeps() || task == sequence_task::evaluate; }
  // The last layer works on one row of each sequence.
  bool last_layer_reads() const {
    return is_attention(model) && task != sequence_task::weights &&
           model.readout != sequence_readout::every;
  }
  extent full_layers() const { return model.layers - (last_layer_reads() ? 1 : 0); }

  extent rows() const { return sizes.batch * sizes.length; }
  extent context_rows() const { return sizes.batch * sizes.context_length; }
  extent key_len() const { return sizes.context_length > 0 ? sizes.context_length : sizes.length; }
  extent key_rows() const { return sizes.batch * key_len(); }
  extent longest() const { return std::max(sizes.length, sizes.context_length); }
  // Rows that are read out, at most.
  extent most_answers() const {
    return model.readout == sequence_readout::every ? rows() : sizes.batch;
  }
};

// The same rows of every layer: in places of their own where they are kept, else in the same place.
struct layer_rows {
  float* data = nullptr;  // null: there are none
  extent stride = 0;
  extent period = 1;

  float* of(extent layer) const {
    return data == nullptr ? nullptr : data + layer % period * stride;
  }
};

// `layers` times `rows` rows, and `last_rows` of one more layer.
inline layer_rows take_layers(workspace& memory, bool keeps, extent layers, extent rows,
                              extent last_rows, extent columns) {
  const extent kept = layers * rows + last_rows;
  const extent most = std::max(layers > 0 ? rows : 0, last_rows);
  return {memory.floats(keeps ? kept : most, columns), rows * columns,
          keeps ? std::max<extent>(layers + 1, 1) : 1};
}

struct sequence_run {
  sequence_plan plan;
  const float* parameters;
  const sequence_inputs& inputs;
  thread_pool& pool;
  float* gradients = nullptr;
  workspace scratch = {};       // one operation's at a time
  status outcome = status::ok;  // the first that is not ok

  void note(status made) {
    if (outcome == status::ok) outcome = made;
  }

  // A view of nothing where the model has no such parameter. Of one axis: one row.
  view<const float, 2> weight(sequence_parameter_kind kind, extent layer = 0) const {
    return place(parameters, kind, layer);
  }
  view<float, 2> d_weight(sequence_parameter_kind kind, extent layer = 0) const {
    return place(gradients, kind, layer);
  }

  // (count, embed_dim)
  template <typename T>
  view<T, 2> rows(T* data, extent count) const {
    return view<T, 2>::contiguous(data, {count, plan.model.embed_dim});
  }

 private:
  template <typename T>
  view<T, 2> place(T* block, sequence_parameter_kind kind, extent layer) const {
    sequence_parameter found;
    if (!find_parameter(plan.model, kind, layer, found)) return {};
    return view<T, 2>::contiguous(block + found.offset,
                                  {std::max<extent>(found.rows, 1), found.columns});
  }
};

// to[i] += from[i]
void add_floats(const float* from, extent count, float* to, thread_pool& pool);

}  // namespace qkv
