#include "sequence_cells.hpp"

#include "qkv/recurrent_backward.hpp"

namespace qkv {

namespace {

using kind = sequence_parameter_kind;

recurrent_sizes sizes_of(const sequence_plan& plan) {
  const extent dim = plan.model.embed_dim;
  return {plan.sizes.batch, plan.sizes.length, dim, dim};
}

template <typename T>
view<T, 3> steps_of(const sequence_plan& plan, T* rows) {
  return view<T, 3>::contiguous(rows, {plan.sizes.batch, plan.sizes.length, plan.model.embed_dim});
}

recurrent_inputs inputs_of(const sequence_run& run, const float* x) {
  return {.x = steps_of(run.plan, x), .lengths = run.inputs.lengths};
}

std::array<recurrent_parameters, 2> parameters_of(const sequence_run& run, extent layer) {
  return {recurrent_parameters{run.weight(kind::wx, layer), run.weight(kind::wh, layer),
                               run.weight(kind::bx, layer).data, run.weight(kind::bh, layer).data},
          recurrent_parameters{}};
}

}  // namespace

cell_memory take_cells(const sequence_plan& plan, workspace& memory) {
  const extent dim = plan.model.embed_dim, layers = plan.model.layers;
  cell_memory made{};
  made.states = memory.floats(2 * plan.sizes.batch, dim);
  if (!plan.keeps()) return made;
  const byte_count bytes = recurrent_trace_bytes(sizes_of(plan), cell_of(plan.model));
  made.trace = take_layers(memory, true, layers, 1, 0, static_cast<extent>(bytes / sizeof(float)));
  made.d_part = memory.floats(plan.rows(), dim);
  return made;
}

byte_count cell_scratch_bytes(const sequence_plan& plan, int workers) {
  const recurrent_sizes sizes = sizes_of(plan);
  const recurrent_options options = cell_of(plan.model);
  const byte_count forward = recurrent_workspace_bytes(sizes, options, workers);
  if (!plan.keeps()) return forward;
  return std::max(forward, recurrent_backward_workspace_bytes(sizes, options, workers));
}

void run_cell(sequence_run& run, const cell_memory& memory, extent layer, const float* x,
              float* output) {
  const auto& [model, sizes, task] = run.plan;
  const auto state = [&](extent which) {
    return view<float, 3>::contiguous(memory.states + which * sizes.batch * model.embed_dim,
                                      {1, sizes.batch, model.embed_dim});
  };
  recurrent_outputs outputs{.outputs = steps_of(run.plan, output), .h = state(0)};
  if (model.mixer == sequence_mixer::lstm) outputs.c = state(1);
  outputs.trace = memory.trace.of(layer);
  run.note(recurrent_forward(inputs_of(run, x), parameters_of(run, layer), cell_of(model), outputs,
                             run.scratch, run.pool));
  if (model.residual) add_floats(x, run.plan.rows() * model.embed_dim, output, run.pool);
}

void run_cell_backward(sequence_run& run, const cell_memory& memory, extent layer, const float* x,
                       float* d_x) {
  const extent count = run.plan.rows() * run.plan.model.embed_dim;
  recurrent_output_gradients d_outputs;
  d_outputs.d_outputs = steps_of<const float>(run.plan, d_x);
  recurrent_gradients gradients;
  gradients.d_x = steps_of(run.plan, memory.d_part);
  gradients.d_parameters[0] = {.d_wx = run.d_weight(kind::wx, layer),
                               .d_wh = run.d_weight(kind::wh, layer),
                               .d_bx = run.d_weight(kind::bx, layer).data,
                               .d_bh = run.d_weight(kind::bh, layer).data};
  run.note(recurrent_backward(inputs_of(run, x), parameters_of(run, layer), cell_of(run.plan.model),
                              memory.trace.of(layer), d_outputs, gradients, run.scratch, run.pool));
  if (run.plan.model.residual) {
    add_floats(memory.d_part, count, d_x, run.pool);
  } else {
    std::copy_n(memory.d_part, count, d_x);
  }
}

}  // namespace qkv
