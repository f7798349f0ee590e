#include "recurrent_backward_run.hpp"

#include "kernels/row.hpp"

namespace qkv {

namespace {

class sequence_run_back {
 public:
  sequence_run_back(const recurrent_backward_task& task, const recurrent_backward_scratch& scratch)
      : task_(task),
        scratch_(scratch),
        order_(task.order),
        hidden_(task.hidden),
        stride_(state_stride(hidden_)) {}

  void run() const {
    start(task_.d_outputs.d_h, scratch_.d_h);
    start(task_.d_outputs.d_c, scratch_.d_c);
    std::fill_n(task_.d_peephole, 3 * stride_, 0.0f);
    extent row = 0;
    for (extent r = 0; r < order_.count(); ++r) row += order_.length(r);
    for (extent step = order_.longest() - 1; step >= 0; --step) {
      row -= order_.active(step);
      take_back(step, row);
    }
    finish(scratch_.d_h, task_.gradients.d_h0);
    finish(scratch_.d_c, task_.gradients.d_c0);
  }

 private:
  // Those that are shorter have theirs wait in their rows.
  void start(const view<const float, 3>& from, float* state) const {
    for (extent r = 0; r < order_.count(); ++r) {
      float* row = state + r * stride_;
      from ? std::copy_n(from.at(task_.direction, order_.sequence(r)), hidden_, row)
           : std::fill_n(row, hidden_, 0.0f);
    }
  }

  void take_back(extent step, extent row) const {
    const extent rows = order_.active(step);
    const view<const float, 3>& d_outputs = task_.d_outputs.d_outputs;
    for (extent r = 0; d_outputs && r < rows; ++r) {
      const float* d_output = d_outputs.at(order_.sequence(r), order_.time(r, step));
      kernels::add_row(d_output + task_.direction * hidden_, hidden_, scratch_.d_h + r * stride_);
    }
    const extent columns = gates_of(task_.options.cell) * hidden_;
    take_step_back(task_.options, task_.weights,
                   {task_.trace.from(row, columns, hidden_), rows, hidden_, scratch_.d_h,
                    scratch_.d_c, scratch_.d_reset, task_.d_peephole,
                    step % 2 == 0 ? kernels::panel_order::rising : kernels::panel_order::falling});
  }

  void finish(const float* state, const view<float, 3>& to) const {
    for (extent r = 0; to && r < order_.count(); ++r) {
      std::copy_n(state + r * stride_, hidden_, to.at(task_.direction, order_.sequence(r)));
    }
  }

  const recurrent_backward_task& task_;
  const recurrent_backward_scratch& scratch_;
  const step_order& order_;
  extent hidden_, stride_;
};

}  // namespace

void run_sequences_back(const recurrent_backward_task& task,
                        const recurrent_backward_scratch& scratch) {
  sequence_run_back(task, scratch).run();
}

}  // namespace qkv
