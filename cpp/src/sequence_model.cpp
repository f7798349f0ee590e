#include "qkv/sequence_model.hpp"

#include <cmath>

#include "sequence_layers.hpp"
#include "sequence_validate.hpp"

namespace qkv {

namespace {

// What rows of all layers may come to before a count of them, or of their bytes, wraps around.
bool is_countable(const sequence_plan& plan) {
  const auto& [model, sizes, task] = plan;
  const auto number = [](extent length) { return static_cast<double>(length); };
  const double rows = (number(sizes.length) + number(sizes.context_length)) * number(sizes.batch);
  const double columns = 4 * number(model.embed_dim) + number(model.classes);
  return rows * columns * (number(model.layers) + 1) <
         number(std::numeric_limits<extent>::max() / 8);
}

byte_count layers_bytes(const sequence_plan& plan, int workers) {
  return lay_out(plan, workspace::measuring()).scratch.measured() + scratch_bytes(plan, workers);
}

// Parameters and both moments, in case that a step has to be undone.
byte_count step_bytes(extent count) {
  return 3 * workspace::bytes_for(count) + adam_workspace_bytes(count);
}

sequence_run start_run(const sequence_model& model, const float* parameters,
                       const sequence_inputs& inputs, sequence_task task, thread_pool& pool) {
  return {.plan = {model, {inputs.batch, inputs.length, inputs.context_length}, task},
          .parameters = parameters,
          .inputs = inputs,
          .pool = pool};
}

status validate(const sequence_run& run, const std::int32_t* targets, const workspace& memory) {
  const auto& [model, sizes, task] = run.plan;
  if (!are_valid(model, run.inputs, targets)) return status::invalid_argument;
  const bool reaches =
      memory.bytes() >= sequence_workspace_bytes(model, sizes, task, run.pool.size());
  return reaches ? status::ok : status::out_of_memory;
}

// rows: (layers, batch, heads, length, columns), of which those beyond each sequence's length
// become 0.
void clear_padding(const sequence_run& run, extent layers, extent heads, extent columns,
                   float* rows) {
  const auto& [batch, length, context_length] = run.plan.sizes;
  for (extent at = 0; run.inputs.lengths != nullptr && at < layers * batch * heads; ++at) {
    const extent valid = run.inputs.lengths[at / heads % batch];
    std::fill_n(rows + (at * length + valid) * columns, (length - valid) * columns, 0.0f);
  }
}

}  // namespace

byte_count sequence_workspace_bytes(const sequence_model& model, const sequence_sizes& sizes,
                                    sequence_task task, int workers) {
  if (!can_be(model)) return 0;
  if (task == sequence_task::start)
    return workspace::bytes_for(model.embed_dim * 2, model.embed_dim);
  const sequence_plan plan{model, sizes, task};
  const byte_count count = sequence_parameter_count(model);
  if (!is_countable(plan) || count > std::numeric_limits<extent>::max() / 16) {
    return std::numeric_limits<byte_count>::max() / 2;
  }
  const byte_count bytes = layers_bytes(plan, workers);
  return task == sequence_task::train ? std::max(bytes, step_bytes(static_cast<extent>(count)))
                                      : bytes;
}

status sequence_forward(const sequence_model& model, const float* parameters,
                        const sequence_inputs& inputs, float* output, workspace memory,
                        thread_pool& pool) {
  sequence_run run = start_run(model, parameters, inputs, sequence_task::forward, pool);
  if (const status valid = validate(run, nullptr, memory); valid != status::ok) return valid;
  const sequence_memory places = lay_out(run.plan, memory);
  run.scratch = places.scratch;
  run_full_layers(run, places);
  if (model.readout == sequence_readout::every) {
    read_out(run, full_output(run, places), run.plan.rows(), output);
    clear_padding(run, 1, 1, model.classes, output);
    return run.outcome;
  }
  choose_reads(run, places);
  if (is_pointer(model)) {
    sequence_result unused;
    point(run, places.pointer, places.attention, reading_layer(run, places), nullptr, output,
          unused);
  } else {
    read_rows(run, places, inputs.batch);
    read_out(run, places.readout.rows, inputs.batch, output);
  }
  return run.outcome;
}

status sequence_weights(const sequence_model& model, const float* parameters,
                        const sequence_inputs& inputs, float* weights, workspace memory,
                        thread_pool& pool) {
  sequence_run run = start_run(model, parameters, inputs, sequence_task::weights, pool);
  if (!is_attention(model)) return status::invalid_argument;
  if (const status valid = validate(run, nullptr, memory); valid != status::ok) return valid;
  const sequence_memory places = lay_out(run.plan, memory);
  run.scratch = places.scratch;
  run_full_layers(run, places, weights);
  clear_padding(run, model.layers, model.num_heads, run.plan.key_len(), weights);
  return run.outcome;
}

status sequence_loss(const sequence_model& model, const float* parameters,
                     const sequence_inputs& inputs, const std::int32_t* targets,
                     sequence_result& result, const sequence_gradients& gradients, workspace memory,
                     thread_pool& pool) {
  const bool learns = gradients.parameters != nullptr;
  sequence_run run = start_run(model, parameters, inputs,
                               learns ? sequence_task::gradients : sequence_task::evaluate, pool);
  if (!learns && gradients.input_norms != nullptr) return status::invalid_argument;
  if (const status valid = validate(run, targets, memory); valid != status::ok) return valid;
  run.gradients = gradients.parameters;
  const sequence_memory places = lay_out(run.plan, memory);
  run.scratch = places.scratch;
  run_full_layers(run, places);
  extent count = inputs.batch;
  if (model.readout == sequence_readout::every) {
    count = choose_answers(run, targets, places.readout);
    targets = places.readout.targets;
  } else {
    choose_reads(run, places);
  }
  if (is_pointer(model)) {
    point(run, places.pointer, places.attention, reading_layer(run, places), targets,
          places.pointer.mean_weights, result);
  } else {
    read_rows(run, places, count);
    answer(run, places.readout, targets, count, result);
  }
  if (!learns) return run.outcome;
  run_layers_backward(run, places, count);
  if (gradients.input_norms != nullptr) row_norms(run, places.rows.d_x, gradients.input_norms);
  return run.outcome;
}

}  // namespace qkv
