// One call of attention_backward(), pass by pass.
#pragma once

#include "attention_backward_tile.hpp"
#include "attention_plan.hpp"

namespace qkv {

class attention_backward_run {
 public:
  attention_backward_run(view<const float, 4> d_out, const attention_inputs& inputs,
                         const attention_options& options, const attention_gradients& gradients,
                         thread_pool& pool)
      : plan_(inputs, options),
        options_(options),
        d_out_(d_out),
        gradients_(gradients),
        pool_(pool) {}

  // False where the workspace does not reach.
  bool take(workspace& memory);

  // Each query once, with its keys: needs the fewest products, and has a task for each key head.
  void by_key_heads();
  // Each query once and then each key once: more tasks, and scores are made twice. The same bits.
  void by_tiles();
  bool key_heads_suffice() const;

  // After either.
  void sum_bias();
  void sum_sinks();

 private:
  backward_scratch scratch(int worker) const;
  head_rows d_out_rows(const attention_sequence& part, extent head) const;
  void clear_keys();
  void clear_bias(key_range batches, key_range heads, key_range queries, key_range keys) const;
  void differentiate_rows(const tile_task& task, const backward_scratch& tiles, bool with_keys);
  template <typename Body>
  void recall_tiles(extent batch, extent head_index, key_range queries, key_range keys,
                    const backward_scratch& tiles, gradients_of what, const Body& body) const;
  void add_to_keys(const backward_tile_pass& pass, const attention_sequence& part, extent head,
                   extent first_key, extent keys) const;
  void add_to_bias(const backward_tile_pass& pass, const attention_sequence& sequence, extent head,
                   extent first_key, extent keys) const;

  attention_plan plan_;
  const attention_options& options_;
  view<const float, 4> d_out_;
  const attention_gradients& gradients_;
  thread_pool& pool_;
  float* scratch_memory_ = nullptr;
  extent worker_floats_ = 0;
  // (batch, num_heads, query_len) each.
  float* max_ = nullptr;
  float* inverse_ = nullptr;
  float* mean_ = nullptr;
};

}  // namespace qkv
