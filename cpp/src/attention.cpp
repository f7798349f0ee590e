#include "qkv/attention.hpp"

#include <cmath>

#include "attention_run.hpp"
#include "attention_validate.hpp"

namespace qkv {

namespace {

// Scores before the rules that hide keys belong to every pair.
attention_options without_rules(const attention_options& options) {
  attention_options plain;
  plain.scale = options.scale;
  plain.softcap = options.softcap;
  return plain;
}

}  // namespace

float default_scale(extent head_dim) {
  return head_dim == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

byte_count attention_workspace_bytes(extent head_dim, extent value_dim, int workers) {
  return workspace::alignment + tile_scratch::bytes(head_dim, value_dim) * workers +
         (workers > 1 ? workspace::bytes_for(attended_rows::floats(held_rows, value_dim)) : 0);
}

byte_count attention_statistics_bytes(extent batch, extent num_heads, extent query_len) {
  return 2 * workspace::bytes_for(batch * num_heads, query_len);
}

status attention_forward(const attention_inputs& inputs, const attention_options& options,
                         const attention_outputs& outputs, workspace memory, thread_pool& pool) {
  if (const status checked = validate_attention(inputs, options, outputs); checked != status::ok) {
    return checked;
  }
  attention_run run(inputs, options, outputs, pool);
  workspace scores_memory = memory;
  if (!run.take(memory)) return status::out_of_memory;
  if (outputs.out || outputs.log_sum_exp || outputs.weights || outputs.mean_weights) run.forward();
  if (outputs.weights) run.write_weights();
  if (outputs.mean_weights) run.write_mean_weights();
  if (outputs.scores) {
    const bool biased = outputs.stage == score_stage::biased;
    const attention_options rules = biased ? options : without_rules(options);
    attention_run scores(inputs, rules, outputs, pool);
    if (!scores.take(scores_memory)) return status::out_of_memory;
    scores.write_scores();
  }
  return status::ok;
}

}  // namespace qkv
