#include "qkv/rnn.hpp"

#include "contiguous.hpp"
#include "kernels/activation.hpp"
#include "kernels/gemm.hpp"

namespace qkv {

namespace {

using kernels::column_panel;
using kernels::padded;

// Sequences of one task: a step is then a small matrix product and reads the weights once for all.
constexpr extent sequence_block = 4 * kernels::row_panel;

status validate(const view<const float, 3>& x, const rnn_parameters& parameters,
                const view<const float, 2>& h0, const view<float, 3>& outputs,
                const view<float, 2>& final_state) {
  const auto& [batch, length, input_dim] = x.shape;
  const extent hidden = parameters.wh.shape[0];
  const std::array state_shape{batch, hidden};
  if (parameters.wx.shape != std::array{input_dim, hidden} ||
      parameters.wh.shape != std::array{hidden, hidden} || (h0 && h0.shape != state_shape) ||
      outputs.shape != std::array{batch, length, hidden} || final_state.shape != state_shape) {
    return status::shape_mismatch;
  }
  const bool contiguous = rows_are_contiguous(x) && rows_are_contiguous(parameters.wx) &&
                          rows_are_contiguous(parameters.wh) && rows_are_contiguous(h0) &&
                          rows_are_contiguous(outputs) && rows_are_contiguous(final_state);
  return contiguous ? status::ok : status::invalid_argument;
}

// The sequences of one task, from first step to last.
struct recurrence {
  const float* wx;  // packed
  const float* wh;
  const rnn_parameters& parameters;
  float* scratch;

  // outputs[b][t] = x[b][t] . wx + bx + bh: what the steps start from, for all of them at once.
  void project_inputs(const view<const float, 3>& x, const view<float, 3>& outputs,
                      extent b) const {
    const extent length = x.shape[1], hidden = outputs.shape[2];
    for (extent t = 0; t < length; ++t) {
      float* row = outputs.at(b, t);
      for (extent j = 0; j < hidden; ++j) {
        row[j] =
            (parameters.bx ? parameters.bx[j] : 0.0f) + (parameters.bh ? parameters.bh[j] : 0.0f);
      }
    }
    kernels::gemm({x.at(b), length, x.strides[1]}, wx, x.shape[2], hidden,
                  {outputs.at(b), outputs.strides[1]}, kernels::write::add, scratch);
  }

  // outputs[b][t] = tanh(outputs[b][t] + state . wh) for sequences [begin, end).
  void step(kernels::left_matrix state, const view<float, 3>& outputs, extent begin,
            extent t) const {
    const extent hidden = outputs.shape[2];
    kernels::gemm(state, wh, hidden, hidden, {outputs.at(begin, t), outputs.strides[0]},
                  kernels::write::add, scratch);
    for (extent b = begin; b < begin + state.rows; ++b) kernels::tanh_row(outputs.at(b, t), hidden);
  }
};

}  // namespace

byte_count rnn_workspace_bytes(extent input_dim, extent hidden, int workers) {
  return workspace::bytes_for(input_dim, padded(hidden, column_panel)) +
         workspace::bytes_for(hidden, padded(hidden, column_panel)) +
         workspace::bytes_for(kernels::gemm_scratch, workers);
}

status rnn_forward(view<const float, 3> x, const rnn_parameters& parameters,
                   view<const float, 2> h0, view<float, 3> outputs, view<float, 2> final_state,
                   workspace memory, thread_pool& pool) {
  if (const status checked = validate(x, parameters, h0, outputs, final_state);
      checked != status::ok) {
    return checked;
  }
  const auto [batch, length, input_dim] = x.shape;
  const extent hidden = parameters.wh.shape[0];
  float* wx = memory.floats(input_dim, padded(hidden, column_panel));
  float* wh = memory.floats(hidden, padded(hidden, column_panel));
  float* scratch = memory.floats(kernels::gemm_scratch, pool.size());
  if (wx == nullptr || wh == nullptr || scratch == nullptr) return status::out_of_memory;
  kernels::pack_columns(parameters.wx.data, parameters.wx.strides[0], input_dim, hidden, wx);
  kernels::pack_columns(parameters.wh.data, parameters.wh.strides[0], hidden, hidden, wh);

  pool.run(kernels::panels(batch, sequence_block), [&](extent task, int worker) {
    const recurrence part{wx, wh, parameters, scratch + worker * kernels::gemm_scratch};
    const extent begin = task * sequence_block;
    const extent rows = std::min(sequence_block, batch - begin);
    for (extent b = begin; b < begin + rows; ++b) {
      float* state = final_state.at(b);
      h0 ? std::copy_n(h0.at(b), hidden, state) : std::fill_n(state, hidden, 0.0f);
      part.project_inputs(x, outputs, b);
    }
    kernels::left_matrix state{final_state.at(begin), rows, final_state.strides[0]};
    for (extent t = 0; t < length; ++t) {
      part.step(state, outputs, begin, t);
      state = {outputs.at(begin, t), rows, outputs.strides[0]};
    }
    if (length == 0) return;
    for (extent b = begin; b < begin + rows; ++b) {
      std::copy_n(outputs.at(b, length - 1), hidden, final_state.at(b));
    }
  });
  return status::ok;
}

}  // namespace qkv
