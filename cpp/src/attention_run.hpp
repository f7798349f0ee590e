// One call of attention_forward(), pass by pass.
#pragma once

#include "key_split.hpp"

namespace qkv {

class attention_run {
 public:
  attention_run(const attention_inputs& inputs, const attention_options& options,
                const attention_outputs& outputs, thread_pool& pool)
      : plan_(inputs, options), options_(options), outputs_(outputs), pool_(pool) {}

  // False where the workspace does not reach.
  bool take(workspace& memory);

  // Output, log_sum_exp, the statistics that the passes over weights start from, and the weights
  // where all of them are wanted.
  void forward();

  // Scores are computed again by the same kernel: asking for these costs time, but never changes a
  // bit of the output. Weights that are already there are left as they are.
  void write_weights();
  void write_mean_weights();
  void write_scores();

 private:
  void forward_by_keys(const key_split& split);
  // With its place for scores, where they are kept.
  attention_head head_of(const tile_task& task) const;
  bool keeps_scores() const;
  tile_scratch scratch(int worker) const;
  void finish_rows(const tile_task& task, const attended_rows& rows);
  void finish_row(extent batch, extent head, extent query, const attended_rows& row);
  void recall_statistics(const query_tile_pass& pass) const;

  attention_plan plan_;
  const attention_options& options_;
  const attention_outputs& outputs_;
  thread_pool& pool_;
  float* scratch_memory_ = nullptr;
  extent worker_floats_ = 0;
  float* held_memory_ = nullptr;
  // (batch, num_heads, query_len), where weights are wanted.
  float* row_max_ = nullptr;
  float* row_sum_ = nullptr;
};

}  // namespace qkv
