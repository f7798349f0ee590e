#include "recurrent_run.hpp"

namespace qkv {

namespace {

class sequence_run {
 public:
  sequence_run(const recurrent_task& task, const recurrent_scratch& scratch)
      : task_(task),
        scratch_(scratch),
        order_(task.order),
        trace_(task.trace),
        gates_(trace_ ? trace_.gates : scratch.gates),
        input_dim_(task.inputs.x.shape[2]),
        hidden_(task.outputs.h.shape[2]),
        stride_(state_stride(hidden_)),
        columns_(gates_of(task.options.cell) * hidden_) {}

  void run() {
    begin();
    const extent longest = order_.longest();
    const extent block = projected_rows / order_.count();
    for (extent step = 0; step < longest; step += block) {
      const extent end = std::min(step + block, longest);
      project(step, end);
      take_steps(step, end);
    }
    finish();
  }

 private:
  float* output(extent sequence, extent time) const {
    return task_.outputs.outputs.at(sequence, time) + task_.direction * hidden_;
  }

  void begin() const {
    const auto start = [&](const view<const float, 3>& from, extent r, float* state) {
      from ? std::copy_n(from.at(task_.direction, order_.sequence(r)), hidden_, state)
           : std::fill_n(state, hidden_, 0.0f);
    };
    for (extent r = 0; r < order_.count(); ++r) {
      start(task_.inputs.h0, r, scratch_.h + r * stride_);
      if (task_.outputs.c) start(task_.inputs.c0, r, scratch_.c + r * stride_);
    }
  }

  // gates = biases + x . wx for steps [step, end), sequence by sequence within each.
  void project(extent step, extent end) const {
    extent rows = 0;
    for (; step < end; ++step) {
      const extent count = order_.active(step);
      for (extent r = 0; r < count; ++r, ++rows) {
        const float* x = task_.inputs.x.at(order_.sequence(r), order_.time(r, step));
        std::copy_n(x, input_dim_, scratch_.x + rows * input_dim_);
        std::copy_n(task_.weights.bias, columns_, gates_ + rows * columns_);
      }
    }
    kernels::multiply_add({scratch_.x, rows, input_dim_}, task_.weights.wx, {gates_, columns_},
                          kernels::panel_order::rising);
  }

  void take_steps(extent step, extent end) {
    float* gates = gates_;
    for (; step < end; ++step) {
      const extent rows = order_.active(step);
      keep(scratch_.h, rows, trace_.h);
      if (task_.outputs.c) keep(scratch_.c, rows, trace_.inner);
      take_step(task_.options, task_.weights,
                {gates, static_cast<bool>(trace_), rows, hidden_, scratch_.h, scratch_.c,
                 scratch_.candidate,
                 step % 2 == 0 ? kernels::panel_order::rising : kernels::panel_order::falling});
      if (task_.options.cell == recurrent_cell::gru) keep(scratch_.candidate, rows, trace_.inner);
      for (extent r = 0; r < rows; ++r) {
        std::copy_n(scratch_.h + r * stride_, hidden_,
                    output(order_.sequence(r), order_.time(r, step)));
      }
      gates += rows * columns_;
    }
    if (trace_) gates_ = gates;
  }

  // The next rows of a piece of the trace.
  void keep(const float* states, extent rows, float*& to) const {
    for (extent r = 0; trace_ && r < rows; ++r) {
      to = std::copy_n(states + r * stride_, hidden_, to);
    }
  }

  void finish() const {
    for (extent r = 0; r < order_.count(); ++r) {
      const extent sequence = order_.sequence(r);
      std::copy_n(scratch_.h + r * stride_, hidden_, task_.outputs.h.at(task_.direction, sequence));
      if (task_.outputs.c) {
        std::copy_n(scratch_.c + r * stride_, hidden_,
                    task_.outputs.c.at(task_.direction, sequence));
      }
      for (extent t = order_.length(r); t < task_.inputs.x.shape[1]; ++t) {
        std::fill_n(output(sequence, t), hidden_, 0.0f);
      }
    }
  }

  const recurrent_task& task_;
  const recurrent_scratch& scratch_;
  const step_order& order_;
  trace_rows trace_;  // the next row
  float* gates_;      // of the next step
  extent input_dim_, hidden_, stride_, columns_;
};

}  // namespace

void run_sequences(const recurrent_task& task, const recurrent_scratch& scratch) {
  sequence_run(task, scratch).run();
}

}  // namespace qkv
