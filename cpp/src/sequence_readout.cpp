#include "sequence_readout.hpp"

#include "qkv/embedding.hpp"
#include "qkv/linear.hpp"
#include "qkv/loss.hpp"

namespace qkv {

namespace {

using kind = sequence_parameter_kind;

}  // namespace

readout_memory take_readout(const sequence_plan& plan, workspace& memory) {
  const extent answers = plan.most_answers(), dim = plan.model.embed_dim;
  const extent classes = plan.model.classes;
  readout_memory made{};
  made.answered = memory.integers(answers);
  made.rows = memory.floats(answers, dim);
  if (!plan.answers() || is_pointer(plan.model)) return made;
  made.targets = memory.integers(answers);
  made.logits = memory.floats(answers, classes);
  made.d_logits = memory.floats(answers, classes);
  if (plan.keeps()) made.d_rows = memory.floats(answers, dim);
  return made;
}

byte_count readout_scratch_bytes(const sequence_plan& plan, int workers) {
  if (is_pointer(plan.model)) return 0;
  const extent dim = plan.model.embed_dim, classes = plan.model.classes;
  const extent answers = plan.most_answers();
  return std::max(
      {linear_workspace_bytes(dim, classes, workers),
       plan.answers() ? cross_entropy_workspace_bytes(answers) : 0,
       plan.keeps() ? linear_backward_workspace_bytes(answers, dim, classes, workers) : 0,
       plan.keeps() ? embedding_backward_workspace_bytes(answers, plan.rows()) : 0});
}

void read_out(sequence_run& run, const float* rows, extent count, float* logits) {
  run.note(linear_forward(
      run.rows(rows, count), run.weight(kind::readout_weight), run.weight(kind::readout_bias).data,
      view<float, 2>::contiguous(logits, {count, run.plan.model.classes}), run.scratch, run.pool));
}

extent choose_answers(const sequence_run& run, const std::int32_t* targets,
                      const readout_memory& memory) {
  const auto& [batch, length, context_length] = run.plan.sizes;
  extent count = 0;
  for (extent row = 0; row < batch * length; ++row) {
    const std::int32_t* lengths = run.inputs.lengths;
    const bool is_valid = lengths == nullptr || row % length < lengths[row / length];
    if (!is_valid || targets[row] < 0) continue;
    memory.answered[count] = static_cast<std::int32_t>(row);
    memory.targets[count++] = targets[row];
  }
  return count;
}

extent first_largest(const float* row, extent count) {
  return std::max_element(row, row + count) - row;
}

void answer(sequence_run& run, const readout_memory& memory, const std::int32_t* targets,
            extent count, sequence_result& result) {
  const extent classes = run.plan.model.classes;
  read_out(run, memory.rows, count, memory.logits);
  extent right = 0;
  for (extent row = 0; row < count; ++row) {
    right += first_largest(memory.logits + row * classes, classes) == targets[row];
  }
  result.accuracy = count == 0 ? 0 : static_cast<double>(right) / static_cast<double>(count);
  const auto d_logits = view<float, 2>::contiguous(memory.d_logits, {count, classes});
  run.note(cross_entropy(view<const float, 2>::contiguous(memory.logits, {count, classes}), targets,
                         result.loss, d_logits, run.scratch, run.pool));
  if (run.gradients == nullptr) return;
  run.note(linear_backward(d_logits, run.rows(memory.rows, count), run.weight(kind::readout_weight),
                           {run.rows(memory.d_rows, count), run.d_weight(kind::readout_weight),
                            run.d_weight(kind::readout_bias).data},
                           run.scratch, run.pool));
}

}  // namespace qkv
