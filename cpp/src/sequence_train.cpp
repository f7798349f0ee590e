#include <algorithm>
#include <cmath>

#include "sequence_parameters.hpp"

namespace qkv {

namespace {

using in = sequence_fault::in;

// -1: all are finite.
extent first_not_finite(const float* x, extent count) {
  const float* found =
      std::find_if_not(x, x + count, [](float each) { return std::isfinite(each); });
  return found == x + count ? -1 : found - x;
}

sequence_fault fault_at(in what, const float* block, extent element) {
  return {what, element, block[element]};
}

// What a step changes, to put it back.
class undo {
 public:
  undo(float* parameters, const adam_state& state, extent count, workspace& memory)
      : now_{parameters, state.mean, state.square}, count_(count) {
    for (int i = 0; i < 3; ++i) {
      before_[i] = memory.floats(count);
      std::copy_n(now_[i], count, before_[i]);
    }
  }
  void restore() const {
    for (int i = 0; i < 3; ++i) std::copy_n(before_[i], count_, now_[i]);
  }

 private:
  float* now_[3];
  float* before_[3];
  extent count_;
};

}  // namespace

status sequence_train_step(const sequence_model& model, float* parameters,
                           const sequence_inputs& inputs, const std::int32_t* targets,
                           sequence_training& training, sequence_result& result,
                           sequence_fault& fault, workspace memory, thread_pool& pool) {
  fault = {};
  const auto count = static_cast<extent>(sequence_parameter_count(model));
  const sequence_sizes sizes{inputs.batch, inputs.length, inputs.context_length};
  if (can_be(model) &&
      memory.bytes() < sequence_workspace_bytes(model, sizes, sequence_task::train, pool.size())) {
    return status::out_of_memory;
  }
  if (const extent element = training.check ? first_not_finite(parameters, count) : -1;
      element >= 0) {
    fault = fault_at(in::parameter, parameters, element);
    return status::invalid_argument;
  }
  const status made = sequence_loss(model, parameters, inputs, targets, result,
                                    {.parameters = training.gradients}, memory, pool);
  if (made != status::ok) return made;
  if (training.check && !std::isfinite(result.loss)) {
    fault = {in::loss, 0, static_cast<float>(result.loss)};
    return status::invalid_argument;
  }
  // The layers' rows are done with.
  const adam_state before = training.state;
  const auto step = [&] {
    adam_fault found;
    const status stepped = adam_step(parameters, training.gradients, count, training.optimizer,
                                     training.state, found, memory, pool);
    if (found.element >= 0) {
      fault = found.in_parameters ? fault_at(in::parameter, parameters, found.element)
                                  : fault_at(in::gradient, training.gradients, found.element);
    }
    return stepped;
  };
  if (!training.check) return step();
  const undo saved(parameters, training.state, count, memory);
  if (const status stepped = step(); stepped != status::ok) return stepped;
  const extent element = first_not_finite(parameters, count);
  if (element < 0) return status::ok;
  fault = fault_at(in::new_parameter, parameters, element);
  saved.restore();
  training.state = before;
  return status::invalid_argument;
}

}  // namespace qkv
