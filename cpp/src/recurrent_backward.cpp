#include "qkv/recurrent_backward.hpp"

#include "contiguous.hpp"
#include "kernels/column_sums.hpp"
#include "recurrent_backward_products.hpp"
#include "recurrent_backward_run.hpp"

namespace qkv {

namespace {

using kernels::padded;
using kernels::wide_panel;

struct plan : recurrent_plan {
  extent stride;  // state_stride

  plan(const recurrent_sizes& sizes, const recurrent_options& options)
      : recurrent_plan(sizes, options), stride(state_stride(sizes.hidden)) {}

  extent joined() const { return columns - candidates; }
  extent packed_hidden() const { return padded(hidden, wide_panel); }
  extent peephole_floats() const { return 3 * hidden + simd::lanes; }
  extent scratch_floats() const { return 3 * sequence_group * stride; }
  extent input_rows() const { return batch * length; }
};

// A view of nothing fits everything.
template <typename View, typename Shape>
status check_view(const View& given, const Shape& shape) {
  if (given && given.shape != shape) return status::shape_mismatch;
  return rows_are_contiguous(given) ? status::ok : status::invalid_argument;
}

status check_gradients(const std::array<recurrent_parameters, 2>& parameters, const plan& plan,
                       bool is_lstm, const recurrent_output_gradients& d_outputs,
                       const recurrent_gradients& to) {
  const auto state = plan.state_shape();
  status checked = status::ok;
  const auto check = [&](const auto& given, const auto& shape) {
    if (checked == status::ok) checked = check_view(given, shape);
  };
  check(d_outputs.d_outputs, plan.output_shape());
  check(d_outputs.d_h, state);
  check(d_outputs.d_c, state);
  check(to.d_x, std::array{plan.batch, plan.length, plan.input_dim});
  check(to.d_h0, state);
  check(to.d_c0, state);
  bool fits = is_lstm || (!d_outputs.d_c && !to.d_c0);
  for (extent d = 0; d < plan.directions; ++d) {
    check(to.d_parameters[d].d_wx, parameters[d].wx.shape);
    check(to.d_parameters[d].d_wh, parameters[d].wh.shape);
    if (to.d_parameters[d].d_peephole != nullptr && parameters[d].peephole == nullptr) fits = false;
  }
  return checked != status::ok || fits ? checked : status::invalid_argument;
}

// Memory of one direction.
struct direction_memory {
  float *wh, *wh_candidate;  // transposed and packed
  float* peephole;
  float* d_peephole;  // (groups, 3, state_stride)

  // False where there is too little.
  bool take(const plan& plan, workspace& memory) {
    wh = memory.floats(plan.joined(), plan.packed_hidden());
    wh_candidate = memory.floats(plan.candidates, plan.packed_hidden());
    peephole = memory.floats(plan.peephole_floats());
    d_peephole = memory.floats(plan.groups(), 3 * plan.stride);
    return wh != nullptr && wh_candidate != nullptr && peephole != nullptr && d_peephole != nullptr;
  }

  static byte_count bytes(const plan& plan) {
    return workspace::bytes_for(plan.joined(), plan.packed_hidden()) +
           workspace::bytes_for(plan.candidates, plan.packed_hidden()) +
           workspace::bytes_for(plan.peephole_floats()) +
           workspace::bytes_for(plan.groups(), 3 * plan.stride);
  }
};

recurrent_weights_back prepare(const recurrent_parameters& given, const plan& plan,
                               const direction_memory& memory) {
  const auto transpose = [&](extent begin, extent depth, float* packed) {
    kernels::pack_rows<kernels::half_panel>(given.wh.at(0, begin), given.wh.strides[0], plan.hidden,
                                            depth, packed);
    return kernels::panel_matrix::packed(packed, depth, plan.hidden);
  };
  if (given.peephole != nullptr) std::copy_n(given.peephole, 3 * plan.hidden, memory.peephole);
  return {transpose(0, plan.joined(), memory.wh),
          transpose(plan.joined(), plan.candidates, memory.wh_candidate),
          given.peephole != nullptr ? memory.peephole : nullptr};
}

void sum_peepholes(const plan& plan, const float* shares, float* d_peephole) {
  for (extent gate = 0; gate < 3; ++gate) {
    kernels::column_sums(shares + gate * plan.stride, 3 * plan.stride, plan.groups(), plan.hidden,
                         d_peephole + gate * plan.hidden);
  }
}

}  // namespace

byte_count recurrent_backward_workspace_bytes(const recurrent_sizes& sizes,
                                              const recurrent_options& options, int workers) {
  const plan plan(sizes, options);
  return static_cast<byte_count>(plan.directions) * direction_memory::bytes(plan) +
         workspace::bytes_for(plan.scratch_floats(), workers) +
         2 * workspace::bytes_for(plan.input_rows(), plan.input_dim) + workspace::alignment +
         linear_products_bytes(plan, workers);
}

status recurrent_backward(const recurrent_inputs& inputs,
                          const std::array<recurrent_parameters, 2>& parameters,
                          const recurrent_options& options, float* trace,
                          const recurrent_output_gradients& d_outputs,
                          const recurrent_gradients& gradients, workspace memory,
                          thread_pool& pool) {
  const auto [batch, length, input_dim] = inputs.x.shape;
  const plan plan({batch, length, input_dim, parameters[0].wh.shape[0]}, options);
  status checked = check_recurrent(inputs, parameters, options, plan);
  if (checked == status::ok) {
    checked = check_gradients(parameters, plan, options.cell == recurrent_cell::lstm, d_outputs,
                              gradients);
  }
  if (checked != status::ok) return checked;
  if (trace == nullptr) return status::invalid_argument;
  std::array<direction_memory, 2> taken;
  for (extent d = 0; d < plan.directions; ++d) {
    if (!taken[d].take(plan, memory)) return status::out_of_memory;
  }
  float* scratch = memory.floats(plan.scratch_floats(), pool.size());
  float* x = memory.floats(plan.input_rows(), input_dim);
  float* d_x = memory.floats(plan.input_rows(), input_dim);
  const byte_count linear_bytes = linear_products_bytes(plan, pool.size());
  float* linear = memory.floats(static_cast<extent>(linear_bytes / sizeof(float)));
  if (scratch == nullptr || x == nullptr || d_x == nullptr || linear == nullptr) {
    return status::out_of_memory;
  }

  std::array<recurrent_weights_back, 2> weights;
  pool.run(plan.directions,
           [&](extent d, int) { weights[d] = prepare(parameters[d], plan, taken[d]); });
  const recurrent_trace layout(plan);
  const extent groups = plan.groups();
  pool.run(plan.directions * groups, [&](extent task, int worker) {
    const extent d = task / groups, group = task % groups, begin = group * sequence_group;
    float* states = scratch + worker * plan.scratch_floats();
    const extent piece = sequence_group * plan.stride;
    run_sequences_back(
        {d_outputs,
         gradients,
         options,
         weights[d],
         d,
         plan.hidden,
         {inputs, is_reverse(options, d), begin, std::min(sequence_group, plan.batch - begin)},
         layout.at(trace, d, steps_before(inputs, begin)),
         taken[d].d_peephole + group * 3 * plan.stride},
        {states, states + piece, states + 2 * piece});
  });
  for (extent d = 0; d < plan.directions; ++d) {
    const auto& to = gradients.d_parameters[d];
    multiply_gradients(
        {inputs, parameters[d], options, plan, d, layout.at(trace, d, 0), gradients.d_x, to},
        {x, d_x, {linear, linear_bytes}}, pool);
    if (to.d_peephole != nullptr) sum_peepholes(plan, taken[d].d_peephole, to.d_peephole);
  }
  return status::ok;
}

}  // namespace qkv
