#include "sequence_attention.hpp"

#include "qkv/linear.hpp"

namespace qkv {

attention_memory take_attention(const sequence_plan& plan, workspace& memory) {
  const auto& [model, sizes, task] = plan;
  const extent dim = model.embed_dim, rows = plan.rows(), key_rows = plan.key_rows();
  const extent full = plan.full_layers(), read = plan.last_layer_reads() ? sizes.batch : 0;
  const bool keeps = plan.keeps(), projects = model.ties != sequence_ties::all;
  // A pointer's last layer has no values.
  const extent with_values = model.layers - (is_pointer(model) ? 1 : 0);
  attention_memory made{};
  if (projects || model.positions == sequence_positions::rotary) {
    made.query = take_layers(memory, keeps, full, rows, read, dim);
    made.key = take_layers(memory, keeps, model.layers, key_rows, 0, dim);
  }
  if (projects && model.ties != sequence_ties::value_input) {
    made.value = take_layers(memory, keeps, with_values, key_rows, 0, dim);
  }
  made.mixed = take_layers(memory, keeps, full, rows, is_pointer(model) ? 0 : read, dim);
  if (model.positions == sequence_positions::rotary) {
    made.cosines = memory.floats(plan.longest(), dim / model.num_heads / 2);
    made.sines = memory.floats(plan.longest(), dim / model.num_heads / 2);
  }
  if (!keeps) return made;
  const extent query_rows = full > 0 ? rows : read;
  made.d_query = memory.floats(query_rows, dim);
  made.d_key = memory.floats(key_rows, dim);
  made.d_value = memory.floats(key_rows, dim);
  if (with_values > 0) made.d_mixed = memory.floats(query_rows, dim);
  if (projects) made.part = memory.floats(std::max(query_rows, key_rows), dim);
  if (model.ties == sequence_ties::query_key) made.weight_part = memory.floats(dim, dim);
  return made;
}

byte_count attention_scratch_bytes(const sequence_plan& plan, int workers) {
  const auto& [model, sizes, task] = plan;
  const extent dim = model.embed_dim, head_dim = dim / model.num_heads;
  const extent query_len = plan.full_layers() > 0 ? sizes.length : 1;
  byte_count bytes =
      std::max(attention_workspace_bytes(head_dim, head_dim, workers) +
                   attention_statistics_bytes(sizes.batch, model.num_heads, query_len),
               linear_workspace_bytes(dim, dim, workers));
  // Where angles are made: a double for each position.
  if (model.positions == sequence_positions::rotary)
    bytes = std::max(bytes, workspace::bytes_for(plan.longest(), 2));
  if (!plan.keeps()) return bytes;
  const view<const float, 4> query{
      nullptr, {sizes.batch, model.num_heads, query_len, head_dim}, {}};
  const view<const float, 4> key{
      nullptr, {sizes.batch, model.num_heads, plan.key_len(), head_dim}, {}};
  const extent most_rows = std::max(sizes.batch * query_len, plan.key_rows());
  return std::max({bytes, attention_backward_workspace_bytes({query, key, key}, workers),
                   linear_backward_workspace_bytes(most_rows, dim, dim, workers)});
}

attention_inputs inputs_of(const sequence_run& run, const attention_memory& memory,
                           const attention_layer& layer) {
  const auto either = [&](const layer_rows& own, const float* else_rows) -> const float* {
    return own.data != nullptr ? own.of(layer.layer) : else_rows;
  };
  const extent key_len = run.plan.key_len();
  const auto key = heads_of(run, either(memory.key, layer.y), key_len);
  return {heads_of(run, either(memory.query, layer.x), queries_of(run, layer)), key,
          has_values(run, layer) ? heads_of(run, either(memory.value, layer.y), key_len) : key};
}

attention_options options_of(const sequence_run& run, const attention_layer& layer) {
  const sequence_model& model = run.plan.model;
  attention_options options;
  options.scale = default_scale(model.embed_dim / model.num_heads);
  options.mask.causal = model.causal;
  options.mask.query_offsets = layer.read_at;
  options.mask.key_lengths =
      run.inputs.context != nullptr ? run.inputs.context_lengths : run.inputs.lengths;
  return options;
}

void mix(sequence_run& run, const attention_memory& memory, const attention_layer& layer,
         view<float, 4> weights) {
  project(run, memory, layer);
  attention_outputs outputs;
  outputs.out = heads_of(run, memory.mixed.of(layer.layer), queries_of(run, layer));
  outputs.weights = weights;
  run.note(attention_forward(inputs_of(run, memory, layer), options_of(run, layer), outputs,
                             run.scratch, run.pool));
}

void finish(sequence_run& run, const attention_memory& memory, const attention_layer& layer,
            float* output) {
  const extent count = run.plan.sizes.batch * queries_of(run, layer);
  project_rows(run, sequence_parameter_kind::wo, layer.layer, memory.mixed.of(layer.layer), count,
               output);
  if (!run.plan.model.residual) return;
  add_floats(layer.x, count * run.plan.model.embed_dim, output, run.pool);
}

void run_layer_backward(sequence_run& run, const attention_memory& memory,
                        const attention_layer& layer, float* d_x, float* d_y) {
  const extent queries = queries_of(run, layer), count = run.plan.sizes.batch * queries;
  const extent key_len = run.plan.key_len();
  run.note(linear_backward(
      run.rows(d_x, count), run.rows(memory.mixed.of(layer.layer), count),
      run.weight(sequence_parameter_kind::wo, layer.layer),
      {run.rows(memory.d_mixed, count), run.d_weight(sequence_parameter_kind::wo, layer.layer)},
      run.scratch, run.pool));
  attention_gradients gradients;
  gradients.d_query = heads_of(run, memory.d_query, queries);
  gradients.d_key = heads_of(run, memory.d_key, key_len);
  gradients.d_value = heads_of(run, memory.d_value, key_len);
  run.note(attention_backward(heads_of(run, memory.d_mixed, queries), inputs_of(run, memory, layer),
                              options_of(run, layer), gradients, run.scratch, run.pool));
  if (!run.plan.model.residual) std::fill_n(d_x, count * run.plan.model.embed_dim, 0.0f);
  project_backward(run, memory, layer, d_x, d_y);
}

}  // namespace qkv
