#include "sequence_projections.hpp"

#include "qkv/linear.hpp"
#include "qkv/rotary.hpp"

namespace qkv {

namespace {

using kind = sequence_parameter_kind;

bool is_rotary(const sequence_model& model) {
  return model.positions == sequence_positions::rotary;
}

rotary_angles angles_of(const sequence_run& run, const attention_memory& memory) {
  const sequence_model& model = run.plan.model;
  const std::array<extent, 2> shape{run.plan.longest(), model.embed_dim / model.num_heads / 2};
  return {view<const float, 2>::contiguous(memory.cosines, shape),
          view<const float, 2>::contiguous(memory.sines, shape)};
}

// One row a sequence, each at a position of its own: as positions of one sequence.
template <typename T>
view<T, 4> read_heads(const sequence_run& run, T* rows) {
  auto heads = heads_of(run, rows, 1);
  std::swap(heads.shape[0], heads.shape[2]);
  std::swap(heads.strides[0], heads.strides[2]);
  return heads;
}

kind key_kind(const sequence_model& model) {
  return model.ties == sequence_ties::query_key ? kind::wq : kind::wk;
}

using turn = status (*)(view<const float, 4>, const rotary_angles&, rotary_pairing, view<float, 4>,
                        thread_pool&);

// Queries and keys, or their gradients, turn in place.
void turn_heads(sequence_run& run, const attention_memory& memory, const attention_layer& layer,
                turn way, float* query, float* key) {
  if (!is_rotary(run.plan.model)) return;
  rotary_angles angles = angles_of(run, memory);
  const auto keys = heads_of(run, key, run.plan.key_len());
  run.note(way(keys, angles, rotary_pairing::halves, keys, run.pool));
  angles.rows = layer.read_at;
  const auto queries = layer.read_at != nullptr ? read_heads(run, query)
                                                : heads_of(run, query, run.plan.sizes.length);
  run.note(way(queries, angles, rotary_pairing::halves, queries, run.pool));
}

}  // namespace

void make_angles(sequence_run& run, const attention_memory& memory) {
  if (!is_rotary(run.plan.model)) return;
  double* positions = workspace(run.scratch).doubles(run.plan.longest());
  for (extent t = 0; t < run.plan.longest(); ++t) positions[t] = static_cast<double>(t);
  const sequence_model& model = run.plan.model;
  const std::array<extent, 2> shape{run.plan.longest(), model.embed_dim / model.num_heads / 2};
  run.note(rotary_tables(positions, 10000.0, view<float, 2>::contiguous(memory.cosines, shape),
                         view<float, 2>::contiguous(memory.sines, shape), run.pool));
}

void project_rows(sequence_run& run, kind which, extent layer, const float* from, extent count,
                  float* rows) {
  if (rows == nullptr) return;
  const auto weight = run.weight(which, layer);
  if (!weight) {
    std::copy_n(from, count * run.plan.model.embed_dim, rows);
    return;
  }
  run.note(linear_forward(run.rows(from, count), weight, nullptr, run.rows(rows, count),
                          run.scratch, run.pool));
}

void project(sequence_run& run, const attention_memory& memory, const attention_layer& layer) {
  const extent queries = run.plan.sizes.batch * queries_of(run, layer), keys = run.plan.key_rows();
  float* query = memory.query.of(layer.layer);
  float* key = memory.key.of(layer.layer);
  project_rows(run, kind::wq, layer.layer, layer.x, queries, query);
  project_rows(run, key_kind(run.plan.model), layer.layer, layer.y, keys, key);
  turn_heads(run, memory, layer, rotary_forward, query, key);
  if (!has_values(run, layer)) return;
  project_rows(run, kind::wv, layer.layer, layer.y, keys, memory.value.of(layer.layer));
}

namespace {

// d_from += d_rows . weight^T, and the weight's gradient, which is added to where the weight had
// one before; without a weight d_from += d_rows.
void project_rows_backward(sequence_run& run, const attention_memory& memory, kind which,
                           extent layer, const float* d_rows, const float* from, extent count,
                           bool is_second, float* d_from) {
  const extent dim = run.plan.model.embed_dim;
  const auto weight = run.weight(which, layer);
  if (!weight) return add_floats(d_rows, count * dim, d_from, run.pool);
  const auto d_weight = run.d_weight(which, layer);
  const auto to = is_second ? run.rows(memory.weight_part, dim) : d_weight;
  run.note(linear_backward(run.rows(d_rows, count), run.rows(from, count), weight,
                           {run.rows(memory.part, count), to}, run.scratch, run.pool));
  add_floats(memory.part, count * dim, d_from, run.pool);
  if (is_second) add_floats(memory.weight_part, dim * dim, d_weight.data, run.pool);
}

}  // namespace

void project_backward(sequence_run& run, const attention_memory& memory,
                      const attention_layer& layer, float* d_x, float* d_y) {
  const sequence_model& model = run.plan.model;
  const extent queries = run.plan.sizes.batch * queries_of(run, layer), keys = run.plan.key_rows();
  turn_heads(run, memory, layer, rotary_backward, memory.d_query, memory.d_key);
  project_rows_backward(run, memory, kind::wq, layer.layer, memory.d_query, layer.x, queries, false,
                        d_x);
  project_rows_backward(run, memory, key_kind(model), layer.layer, memory.d_key, layer.y, keys,
                        model.ties == sequence_ties::query_key, d_y);
  if (!has_values(run, layer)) return;
  project_rows_backward(run, memory, kind::wv, layer.layer, memory.d_value, layer.y, keys, false,
                        d_y);
}

}  // namespace qkv
