// From the rows of a layer of attention to its queries, keys and values, and back.
#pragma once

#include "qkv/attention.hpp"
#include "sequence_run.hpp"

namespace qkv {

struct attention_memory {
  // Of each layer, heads side by side; null where x or the context's rows serve as they are.
  layer_rows query, key, value, mixed;
  float* cosines;  // rotary: (longest length, head_dim / 2)
  float* sines;
  // Backward, as what they are the gradient of.
  float *d_query, *d_key, *d_value, *d_mixed;
  float* part;         // rows on their way to a sum
  float* weight_part;  // query_key: (embed_dim, embed_dim), likewise
};

// What one layer works on.
struct attention_layer {
  extent layer;
  const float* x;  // (batch, queries, embed_dim)
  const float* y;  // (batch, key_len, embed_dim)
  // Null: queries are all rows of x. Else one of each sequence, at this position.
  const std::int32_t* read_at = nullptr;
};

inline extent queries_of(const sequence_run& run, const attention_layer& layer) {
  return layer.read_at != nullptr ? 1 : run.plan.sizes.length;
}

// The last layer of a pointer has none: its weights are the answer.
inline bool has_values(const sequence_run& run, const attention_layer& layer) {
  return !is_pointer(run.plan.model) || layer.layer < run.plan.model.layers - 1;
}

// (batch, num_heads, length, head_dim) of rows with the heads side by side.
template <typename T>
view<T, 4> heads_of(const sequence_run& run, T* rows, extent length) {
  const extent dim = run.plan.model.embed_dim, heads = run.plan.model.num_heads;
  return {rows,
          {run.plan.sizes.batch, heads, length, dim / heads},
          {length * dim, dim / heads, dim, 1}};
}

// The angles of rotary positions, for all layers.
void make_angles(sequence_run& run, const attention_memory& memory);

// rows, (count, embed_dim), become from . weight; from, where the model has no such weight; and
// where rows is null nothing happens.
void project_rows(sequence_run& run, sequence_parameter_kind which, extent layer, const float* from,
                  extent count, float* rows);

// From x and y to queries, keys and, where the layer has them, values.
void project(sequence_run& run, const attention_memory& memory, const attention_layer& layer);

// Of project(), from d_query, d_key and d_value in memory. Adds to d_x and d_y, which may be one.
void project_backward(sequence_run& run, const attention_memory& memory,
                      const attention_layer& layer, float* d_x, float* d_y);

}  // namespace qkv
