#include "attention_backward_run.hpp"
#include "attention_validate.hpp"

namespace qkv {

byte_count attention_backward_workspace_bytes(const attention_inputs& inputs, int workers) {
  const attention_sizes sizes(inputs);
  const byte_count tiles = backward_scratch::bytes(sizes.key_len, sizes.head_dim, sizes.value_dim);
  return workspace::alignment + tiles * workers +
         3 * workspace::bytes_for(sizes.batch * sizes.num_heads, sizes.query_len);
}

status attention_backward(view<const float, 4> d_out, const attention_inputs& inputs,
                          const attention_options& options, const attention_gradients& gradients,
                          workspace memory, thread_pool& pool) {
  const status checked = validate_attention_backward(d_out, inputs, options, gradients);
  if (checked != status::ok) return checked;
  attention_backward_run run(d_out, inputs, options, gradients, pool);
  if (!run.take(memory)) return status::out_of_memory;
  if (run.key_heads_suffice()) {
    run.by_key_heads();
  } else {
    run.by_tiles();
  }
  if (gradients.d_bias) run.sum_bias();
  if (gradients.d_sinks != nullptr) run.sum_sinks();
  return status::ok;
}

}  // namespace qkv
