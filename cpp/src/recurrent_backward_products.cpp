#include "recurrent_backward_products.hpp"

#include "kernels/row.hpp"
#include "qkv/linear.hpp"

namespace qkv {

namespace {

// Calls visit(sequence, time, row) for every row of the trace, a group to a task.
template <typename Visit>
void for_each_row(const recurrent_products& task, thread_pool& pool, const Visit& visit) {
  const extent batch = task.plan.batch;
  pool.run(task.plan.groups(), [&](extent group, int) {
    const extent begin = group * sequence_group;
    const step_order order(task.inputs, is_reverse(task.options, task.direction), begin,
                           std::min(sequence_group, batch - begin));
    extent row = steps_before(task.inputs, begin);
    for (extent step = 0; step < order.longest(); ++step) {
      const extent rows = order.active(step);
      for (extent r = 0; r < rows; ++r) visit(order.sequence(r), order.time(r, step), row++);
    }
  });
}

// d_x = d_x_rows, or d_x += d_x_rows.
void spread_d_x(const recurrent_products& task, const float* d_x_rows, thread_pool& pool) {
  const auto [batch, length, input_dim] = task.d_x.shape;
  if (task.direction == 0) {
    for (extent b = 0; b < batch; ++b) {
      for (extent t = length_of(task.inputs, b); t < length; ++t) {
        std::fill_n(task.d_x.at(b, t), input_dim, 0.0f);
      }
    }
  }
  for_each_row(task, pool, [&, input_dim = input_dim](extent b, extent t, extent row) {
    const float* from = d_x_rows + row * input_dim;
    float* to = task.d_x.at(b, t);
    if (task.direction == 0) {
      std::copy_n(from, input_dim, to);
    } else {
      kernels::add_row(from, input_dim, to);
    }
  });
}

// d_wh and d_bh of columns [begin, begin + count), which multiplied `states`.
void multiply_states(const recurrent_products& task, extent begin, const float* states,
                     view<const float, 2> d_a, workspace memory, thread_pool& pool) {
  const auto [rows, count] = d_a.shape;
  const extent hidden = task.plan.hidden;
  const view<const float, 2>& wh = task.parameters.wh;
  linear_gradients to;
  if (const view<float, 2>& d_wh = task.to.d_wh) {
    to.d_weight = {d_wh.at(0, begin), {hidden, count}, d_wh.strides};
  }
  if (task.to.d_bh != nullptr) to.d_bias = task.to.d_bh + begin;
  linear_backward(d_a, view<const float, 2>::contiguous(states, {rows, hidden}),
                  {wh.at(0, begin), {hidden, count}, wh.strides}, to, memory, pool);
}

}  // namespace

byte_count linear_products_bytes(const recurrent_plan& plan, int workers) {
  return linear_backward_workspace_bytes(
      plan.batch * plan.length, std::max(plan.input_dim, plan.hidden), plan.columns, workers);
}

void multiply_gradients(const recurrent_products& task, const recurrent_products_memory& memory,
                        thread_pool& pool) {
  const recurrent_plan& plan = task.plan;
  const extent rows = steps_before(task.inputs, plan.batch), input_dim = plan.input_dim;
  const auto& [gates, h, inner] = task.trace;
  const auto d_a = [&, gates = gates](extent begin, extent count) {
    return view<const float, 2>{gates + begin, {rows, count}, {plan.columns, 1}};
  };

  for_each_row(task, pool, [&](extent b, extent t, extent row) {
    std::copy_n(task.inputs.x.at(b, t), input_dim, memory.x + row * input_dim);
  });
  const auto x = view<float, 2>::contiguous(memory.x, {rows, input_dim});
  const auto d_x = view<float, 2>::contiguous(memory.d_x, {rows, input_dim});
  linear_backward(d_a(0, plan.columns), x, task.parameters.wx,
                  {task.d_x ? d_x : view<float, 2>{}, task.to.d_wx, task.to.d_bx}, memory.linear,
                  pool);
  if (task.d_x) spread_d_x(task, memory.d_x, pool);

  const extent joined = plan.columns - plan.candidates;
  multiply_states(task, 0, h, d_a(0, joined), memory.linear, pool);
  if (plan.candidates == 0) return;
  const bool after = task.options.reset_after;
  multiply_states(task, joined, after ? h : inner,
                  after ? view<const float, 2>::contiguous(inner, {rows, plan.hidden})
                        : d_a(joined, plan.hidden),
                  memory.linear, pool);
}

}  // namespace qkv
