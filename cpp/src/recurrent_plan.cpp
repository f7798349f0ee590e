#include "recurrent_plan.hpp"

#include "contiguous.hpp"

namespace qkv {

namespace {

status check_shapes(const recurrent_inputs& inputs,
                    const std::array<recurrent_parameters, 2>& parameters,
                    const recurrent_plan& plan) {
  const bool fits = (!inputs.h0 || inputs.h0.shape == plan.state_shape()) &&
                    (!inputs.c0 || inputs.c0.shape == plan.state_shape());
  if (!fits) return status::shape_mismatch;
  for (extent d = 0; d < plan.directions; ++d) {
    const auto& [wx, wh, bx, bh, peephole] = parameters[d];
    if (wx.shape != std::array{plan.input_dim, plan.columns} ||
        wh.shape != std::array{plan.hidden, plan.columns}) {
      return status::shape_mismatch;
    }
    if (!rows_are_contiguous(wx) || !rows_are_contiguous(wh)) return status::invalid_argument;
  }
  const bool contiguous = rows_are_contiguous(inputs.x) && rows_are_contiguous(inputs.h0) &&
                          rows_are_contiguous(inputs.c0);
  return contiguous ? status::ok : status::invalid_argument;
}

}  // namespace

status check_recurrent(const recurrent_inputs& inputs,
                       const std::array<recurrent_parameters, 2>& parameters,
                       const recurrent_options& options, const recurrent_plan& plan) {
  const status checked = check_shapes(inputs, parameters, plan);
  if (checked != status::ok) return checked;
  const bool is_lstm = options.cell == recurrent_cell::lstm;
  if (inputs.c0 && !is_lstm) return status::invalid_argument;
  for (extent d = 0; d < plan.directions; ++d) {
    if (parameters[d].peephole != nullptr && !is_lstm) return status::invalid_argument;
  }
  for (extent b = 0; b < plan.batch; ++b) {
    const extent length = length_of(inputs, b);
    if (length < 0 || length > plan.length) return status::invalid_argument;
  }
  return status::ok;
}

extent steps_before(const recurrent_inputs& inputs, extent sequence) {
  if (inputs.lengths == nullptr) return sequence * inputs.x.shape[1];
  extent steps = 0;
  for (extent b = 0; b < sequence; ++b) steps += length_of(inputs, b);
  return steps;
}

}  // namespace qkv
