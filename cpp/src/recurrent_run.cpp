#include "recurrent_run.hpp"

namespace qkv {

namespace {

class sequence_run {
 public:
  sequence_run(const recurrent_task& task, const recurrent_scratch& scratch)
      : task_(task),
        scratch_(scratch),
        input_dim_(task.inputs.x.shape[2]),
        hidden_(task.outputs.h.shape[2]),
        stride_(state_stride(hidden_)),
        columns_(gates_of(task.options.cell) * hidden_) {
    // The longest first: those that still have steps to take are then the first rows.
    for (extent count = 0; count < task.count; ++count) {
      const extent sequence = task.begin + count;
      extent r = count;
      for (; r > 0 && length_of(order_[r - 1]) < length_of(sequence); --r)
        order_[r] = order_[r - 1];
      order_[r] = sequence;
    }
  }

  void run() const {
    begin();
    const extent longest = length_of(order_[0]);
    const extent block = projected_rows / task_.count;
    for (extent step = 0; step < longest; step += block) {
      const extent end = std::min(step + block, longest);
      project(step, end);
      take_steps(step, end);
    }
    finish();
  }

 private:
  extent length_of(extent sequence) const {
    const std::int32_t* lengths = task_.inputs.lengths;
    return lengths != nullptr ? lengths[sequence] : task_.inputs.x.shape[1];
  }

  // Sequences that are longer than `step`.
  extent active(extent step) const {
    extent rows = task_.count;
    while (rows > 0 && length_of(order_[rows - 1]) <= step) --rows;
    return rows;
  }

  extent time_of(extent sequence, extent step) const {
    return task_.reverse ? length_of(sequence) - 1 - step : step;
  }

  float* output(extent sequence, extent time) const {
    return task_.outputs.outputs.at(sequence, time) + task_.direction * hidden_;
  }

  void begin() const {
    const auto start = [&](const view<const float, 3>& from, extent r, float* state) {
      from ? std::copy_n(from.at(task_.direction, order_[r]), hidden_, state)
           : std::fill_n(state, hidden_, 0.0f);
    };
    for (extent r = 0; r < task_.count; ++r) {
      start(task_.inputs.h0, r, scratch_.h + r * stride_);
      if (task_.outputs.c) start(task_.inputs.c0, r, scratch_.c + r * stride_);
    }
  }

  // gates = biases + x . wx for steps [step, end), sequence by sequence within each.
  void project(extent step, extent end) const {
    extent rows = 0;
    for (; step < end; ++step) {
      const extent count = active(step);
      for (extent r = 0; r < count; ++r, ++rows) {
        const float* x = task_.inputs.x.at(order_[r], time_of(order_[r], step));
        std::copy_n(x, input_dim_, scratch_.x + rows * input_dim_);
        std::copy_n(task_.weights.bias, columns_, scratch_.gates + rows * columns_);
      }
    }
    kernels::multiply_add({scratch_.x, rows, input_dim_}, task_.weights.wx,
                          {scratch_.gates, columns_}, kernels::panel_order::rising);
  }

  void take_steps(extent step, extent end) const {
    float* gates = scratch_.gates;
    for (; step < end; ++step) {
      const extent rows = active(step);
      take_step(task_.options, task_.weights,
                {gates, rows, hidden_, scratch_.h, scratch_.c, scratch_.candidate,
                 step % 2 == 0 ? kernels::panel_order::rising : kernels::panel_order::falling});
      for (extent r = 0; r < rows; ++r) {
        std::copy_n(scratch_.h + r * stride_, hidden_, output(order_[r], time_of(order_[r], step)));
      }
      gates += rows * columns_;
    }
  }

  void finish() const {
    for (extent r = 0; r < task_.count; ++r) {
      const extent sequence = order_[r];
      std::copy_n(scratch_.h + r * stride_, hidden_, task_.outputs.h.at(task_.direction, sequence));
      if (task_.outputs.c) {
        std::copy_n(scratch_.c + r * stride_, hidden_,
                    task_.outputs.c.at(task_.direction, sequence));
      }
      for (extent t = length_of(sequence); t < task_.inputs.x.shape[1]; ++t) {
        std::fill_n(output(sequence, t), hidden_, 0.0f);
      }
    }
  }

  const recurrent_task& task_;
  const recurrent_scratch& scratch_;
  extent input_dim_, hidden_, stride_, columns_;
  std::array<extent, sequence_group> order_;
};

}  // namespace

void run_sequences(const recurrent_task& task, const recurrent_scratch& scratch) {
  sequence_run(task, scratch).run();
}

}  // namespace qkv
