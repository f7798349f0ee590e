#include "sequence_layers.hpp"

#include "qkv/embedding.hpp"

namespace qkv {

sequence_memory lay_out(const sequence_plan& plan, workspace memory) {
  const extent batch = plan.sizes.batch, dim = plan.model.embed_dim;
  sequence_memory made{};
  made.rows = take_rows(plan, memory);
  if (is_attention(plan.model)) {
    made.attention = take_attention(plan, memory);
  } else {
    made.cells = take_cells(plan, memory);
  }
  if (is_pointer(plan.model)) made.pointer = take_pointer(plan, memory);
  made.readout = take_readout(plan, memory);
  made.read_at = memory.integers(batch);
  if (plan.last_layer_reads()) {
    made.read_x = memory.floats(batch, dim);
    if (plan.keeps()) made.d_read = memory.floats(batch, dim);
  }
  made.scratch = memory;
  return made;
}

byte_count scratch_bytes(const sequence_plan& plan, int workers) {
  const byte_count layers = is_attention(plan.model) ? attention_scratch_bytes(plan, workers)
                                                     : cell_scratch_bytes(plan, workers);
  return std::max({layers, readout_scratch_bytes(plan, workers), rows_scratch_bytes(plan)});
}

namespace {

const float* keys_from(const sequence_run& run, const sequence_memory& memory, extent layer) {
  return run.inputs.context != nullptr ? memory.rows.context : memory.rows.x.of(layer);
}

attention_layer full_layer(const sequence_run& run, const sequence_memory& memory, extent layer) {
  return {layer, memory.rows.x.of(layer), keys_from(run, memory, layer)};
}

}  // namespace

float* full_output(const sequence_run& run, const sequence_memory& memory) {
  return memory.rows.x.of(run.plan.full_layers());
}

void run_full_layers(sequence_run& run, const sequence_memory& memory, float* weights) {
  const auto& [model, sizes, task] = run.plan;
  embed_rows(run, memory.rows);
  if (is_attention(model)) make_angles(run, memory.attention);
  const std::array<extent, 4> shape{sizes.batch, model.num_heads, sizes.length, run.plan.key_len()};
  for (extent layer = 0; layer < run.plan.full_layers(); ++layer) {
    float* output = memory.rows.x.of(layer + 1);
    if (!is_attention(model)) {
      run_cell(run, memory.cells, layer, memory.rows.x.of(layer), output);
      continue;
    }
    const attention_layer one = full_layer(run, memory, layer);
    const auto layer_weights = view<float, 4>::contiguous(weights, shape);
    mix(run, memory.attention, one, layer_weights);
    if (weights != nullptr) {
      weights += layer_weights.strides[0] * sizes.batch;
      if (layer == model.layers - 1) return;
    }
    finish(run, memory.attention, one, output);
  }
}

void choose_reads(const sequence_run& run, const sequence_memory& memory) {
  const auto& [batch, length, context_length] = run.plan.sizes;
  const auto& [lengths, read_at] = std::pair(run.inputs.lengths, run.inputs.read_at);
  for (extent b = 0; b < batch; ++b) {
    const auto last = static_cast<std::int32_t>((lengths != nullptr ? lengths[b] : length) - 1);
    memory.read_at[b] = read_at != nullptr ? read_at[b] : last;
    memory.readout.answered[b] = static_cast<std::int32_t>(b * length) + memory.read_at[b];
  }
}

attention_layer reading_layer(sequence_run& run, const sequence_memory& memory) {
  const extent layer = run.plan.full_layers(), batch = run.plan.sizes.batch;
  run.note(embedding_forward(run.rows(full_output(run, memory), run.plan.rows()),
                             memory.readout.answered, run.rows(memory.read_x, batch)));
  return {layer, memory.read_x, keys_from(run, memory, layer), memory.read_at};
}

void read_rows(sequence_run& run, const sequence_memory& memory, extent count) {
  if (run.plan.last_layer_reads()) {
    const attention_layer reading = reading_layer(run, memory);
    mix(run, memory.attention, reading, {});
    return finish(run, memory.attention, reading, memory.readout.rows);
  }
  run.note(embedding_forward(run.rows(full_output(run, memory), run.plan.rows()),
                             memory.readout.answered, run.rows(memory.readout.rows, count)));
}

namespace {

// What comes of the keys goes to the context, or else to x.
float* d_keys(const sequence_run& run, const sequence_memory& memory) {
  return run.inputs.context != nullptr ? memory.rows.d_context : memory.rows.d_x;
}

void reading_layer_backward(sequence_run& run, const sequence_memory& memory) {
  const extent layer = run.plan.full_layers(), batch = run.plan.sizes.batch;
  const extent dim = run.plan.model.embed_dim;
  const attention_layer reading{layer, memory.read_x, keys_from(run, memory, layer),
                                memory.read_at};
  std::fill_n(memory.rows.d_x, run.plan.rows() * dim, 0.0f);
  if (is_pointer(run.plan.model)) {
    point_backward(run, memory.pointer, memory.attention, reading, memory.d_read,
                   d_keys(run, memory));
  } else {
    std::copy_n(memory.readout.d_rows, batch * dim, memory.d_read);
    run_layer_backward(run, memory.attention, reading, memory.d_read, d_keys(run, memory));
  }
  for (extent b = 0; b < batch; ++b) {
    add_floats(memory.d_read + b * dim, dim, memory.rows.d_x + memory.readout.answered[b] * dim,
               run.pool);
  }
}

}  // namespace

void run_layers_backward(sequence_run& run, const sequence_memory& memory, extent count) {
  const extent context_floats = run.plan.context_rows() * run.plan.model.embed_dim;
  std::fill_n(memory.rows.d_context, context_floats, 0.0f);
  if (run.plan.last_layer_reads()) {
    reading_layer_backward(run, memory);
  } else {
    run.note(embedding_backward(run.rows(memory.readout.d_rows, count), memory.readout.answered,
                                run.rows(memory.rows.d_x, run.plan.rows()), run.scratch, run.pool));
  }
  for (extent layer = run.plan.full_layers(); layer-- > 0;) {
    if (is_attention(run.plan.model)) {
      run_layer_backward(run, memory.attention, full_layer(run, memory, layer), memory.rows.d_x,
                         d_keys(run, memory));
    } else {
      run_cell_backward(run, memory.cells, layer, memory.rows.x.of(layer), memory.rows.d_x);
    }
  }
  embed_rows_backward(run, memory.rows);
}

}  // namespace qkv
