#include "sequence_pointer.hpp"

#include <cmath>

#include "kernels/portable_math.hpp"
#include "sequence_readout.hpp"

namespace qkv {

namespace {

// A weight that underflows would make the loss infinite.
constexpr double least_weight = 0x1p-100;

// With values that are 1 at the target and 0 elsewhere attention gives the target's weights, and
// its backward pass takes their gradient: no more is needed to learn where to point.
attention_inputs target_inputs(const sequence_run& run, const pointer_memory& memory,
                               const attention_memory& attention, const attention_layer& layer) {
  const extent key_len = run.plan.key_len();
  attention_inputs inputs = inputs_of(run, attention, layer);
  inputs.value = {memory.values,
                  {run.plan.sizes.batch, run.plan.model.num_heads, key_len, 1},
                  {key_len, 0, 1, 1}};
  return inputs;
}

view<float, 4> of_heads(const sequence_run& run, float* numbers) {
  return view<float, 4>::contiguous(numbers,
                                    {run.plan.sizes.batch, run.plan.model.num_heads, 1, 1});
}

// The mean over the heads, not below the least.
double weight_of(const sequence_run& run, const pointer_memory& memory, extent b) {
  const extent heads = run.plan.model.num_heads;
  double sum = 0;
  for (extent h = 0; h < heads; ++h) sum += memory.target_weights[b * heads + h];
  // Not std::max, which would hide NaN.
  const double mean = sum / static_cast<double>(heads);
  return mean < least_weight ? least_weight : mean;
}

}  // namespace

pointer_memory take_pointer(const sequence_plan& plan, workspace& memory) {
  const extent batch = plan.sizes.batch, heads = plan.model.num_heads;
  pointer_memory made{};
  made.values = memory.floats(plan.key_rows());
  made.target_weights = memory.floats(batch, heads);
  if (plan.answers()) made.mean_weights = memory.floats(plan.key_rows());
  if (plan.keeps()) made.d_target_weights = memory.floats(batch, heads);
  return made;
}

void point(sequence_run& run, const pointer_memory& memory, const attention_memory& attention,
           const attention_layer& layer, const std::int32_t* targets, float* weights,
           sequence_result& result) {
  const extent batch = run.plan.sizes.batch, key_len = run.plan.key_len();
  std::fill_n(memory.values, run.plan.key_rows(), 0.0f);
  for (extent b = 0; targets != nullptr && b < batch; ++b) {
    memory.values[b * key_len + targets[b]] = 1.0f;
  }
  project(run, attention, layer);
  attention_outputs outputs;
  outputs.out = of_heads(run, memory.target_weights);
  outputs.mean_weights = view<float, 3>::contiguous(weights, {batch, 1, key_len});
  run.note(attention_forward(target_inputs(run, memory, attention, layer), options_of(run, layer),
                             outputs, run.scratch, run.pool));
  if (targets == nullptr) return;
  extent right = 0;
  double sum = 0;
  for (extent b = 0; b < batch; ++b) {
    const double weight = weight_of(run, memory, b);
    // NaN goes on: the portable logarithm takes numbers above 0 alone.
    sum -= weight > 0 ? kernels::logarithm(weight) : weight;
    right += first_largest(weights + b * key_len, key_len) == targets[b];
  }
  result.loss = batch == 0 ? 0 : sum / static_cast<double>(batch);
  result.accuracy = batch == 0 ? 0 : static_cast<double>(right) / static_cast<double>(batch);
}

void point_backward(sequence_run& run, const pointer_memory& memory,
                    const attention_memory& attention, const attention_layer& layer, float* d_x,
                    float* d_y) {
  const extent batch = run.plan.sizes.batch, heads = run.plan.model.num_heads;
  const extent dim = run.plan.model.embed_dim, key_len = run.plan.key_len();
  for (extent b = 0; b < batch; ++b) {
    // loss = mean over b of -ln(mean over h of weight)
    const double shares = static_cast<double>(batch) * static_cast<double>(heads);
    const double slope = -1 / (weight_of(run, memory, b) * shares);
    std::fill_n(memory.d_target_weights + b * heads, heads, static_cast<float>(slope));
  }
  attention_gradients gradients;
  gradients.d_query = heads_of(run, attention.d_query, 1);
  gradients.d_key = heads_of(run, attention.d_key, key_len);
  // Nobody asks for it, but it is written: one number a head and key.
  gradients.d_value = heads_of(run, attention.d_value, key_len);
  gradients.d_value.shape[3] = 1;
  run.note(attention_backward(of_heads(run, memory.d_target_weights),
                              target_inputs(run, memory, attention, layer), options_of(run, layer),
                              gradients, run.scratch, run.pool));
  std::fill_n(d_x, batch * dim, 0.0f);
  project_backward(run, attention, layer, d_x, d_y);
}

}  // namespace qkv
