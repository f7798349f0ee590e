#include "qkv/attention.hpp"

#include <cmath>

#include "attention_tile.hpp"
#include "contiguous.hpp"

namespace qkv {

namespace {

struct attention_sizes {
  extent batch, num_heads, query_len, key_len, head_dim, value_dim, heads_per_kv_head;

  explicit attention_sizes(const attention_inputs& inputs)
      : batch(inputs.query.shape[0]),
        num_heads(inputs.query.shape[1]),
        query_len(inputs.query.shape[2]),
        key_len(inputs.key.shape[2]),
        head_dim(inputs.query.shape[3]),
        value_dim(inputs.value.shape[3]),
        heads_per_kv_head(inputs.key.shape[1] == 0 ? 1 : num_heads / inputs.key.shape[1]) {}

  extent query_tiles() const { return kernels::panels(query_len, query_tile); }
  extent tasks() const { return batch * num_heads * query_tiles(); }
};

status validate_key(const attention_inputs& inputs) {
  const auto& [query, key, value] = inputs;
  const extent num_heads = query.shape[1], num_kv_heads = key.shape[1];
  const bool heads_match = num_kv_heads == 0 ? num_heads == 0 : num_heads % num_kv_heads == 0;
  if (key.shape[0] != query.shape[0] || key.shape[3] != query.shape[3] || !heads_match) {
    return status::shape_mismatch;
  }
  const bool contiguous = rows_are_contiguous(query) && rows_are_contiguous(key);
  return contiguous ? status::ok : status::invalid_argument;
}

status validate(const attention_inputs& inputs, const attention_options& options,
                const attention_outputs& outputs) {
  if (const status checked = validate_key(inputs); checked != status::ok) return checked;
  const auto& [query, key, value] = inputs;
  const auto& [batch, num_heads, query_len, head_dim] = query.shape;
  const extent key_len = key.shape[2], value_dim = value.shape[3];
  const std::array score_shape{batch, num_heads, query_len, key_len};
  if (value.shape != std::array{batch, key.shape[1], key_len, value_dim} ||
      outputs.out.shape != std::array{batch, num_heads, query_len, value_dim} ||
      (outputs.weights && outputs.weights.shape != score_shape) ||
      (options.mask.allowed && options.mask.allowed.shape != score_shape) ||
      (outputs.log_sum_exp &&
       outputs.log_sum_exp.shape != std::array{batch, num_heads, query_len})) {
    return status::shape_mismatch;
  }
  if (!std::isfinite(options.scale) || !rows_are_contiguous(value) ||
      !rows_are_contiguous(outputs.out) || !rows_are_contiguous(outputs.weights)) {
    return status::invalid_argument;
  }
  return status::ok;
}

// Calls task(head, batch, head_index, first_query, scratch) for every tile of queries.
template <typename Task>
status for_each_query_tile(const attention_inputs& inputs, const attention_options& options,
                           workspace memory, thread_pool& pool, const Task& task) {
  const attention_sizes sizes(inputs);
  const byte_count worker_bytes = tile_scratch::bytes(sizes.head_dim, sizes.value_dim);
  const auto worker_floats = static_cast<extent>(worker_bytes / sizeof(float));
  float* scratch_memory = memory.floats(worker_floats, pool.size());
  if (scratch_memory == nullptr) return status::out_of_memory;

  pool.run(sizes.tasks(), [&](extent number, int worker) {
    workspace own(scratch_memory + worker * worker_floats, worker_bytes);
    const tile_scratch scratch = tile_scratch::take(own, sizes.head_dim, sizes.value_dim);
    const extent first = number % sizes.query_tiles() * query_tile;
    const extent head_index = number / sizes.query_tiles() % sizes.num_heads;
    const extent batch = number / sizes.query_tiles() / sizes.num_heads;
    const extent kv_head = head_index / sizes.heads_per_kv_head;
    const attention_head head{{inputs.query.at(batch, head_index), inputs.query.strides[2]},
                              {inputs.key.at(batch, kv_head), inputs.key.strides[2]},
                              {inputs.value.at(batch, kv_head), inputs.value.strides[2]},
                              sizes.query_len,
                              sizes.key_len,
                              sizes.head_dim,
                              sizes.value_dim,
                              options.scale,
                              {options.mask, batch, head_index, sizes.key_len}};
    const query_tile_pass pass(head, scratch, first, std::min(query_tile, sizes.query_len - first));
    pass.pack_queries();
    task(pass, batch, head_index);
  });
  return status::ok;
}

// Divides by the sums. A row that saw no key has a sum of 0 and nothing added: zeros.
void write_out(const query_tile_pass& pass, const view<float, 4>& out, extent batch, extent head) {
  const extent value_dim = out.shape[3];
  const extent columns = kernels::padded(value_dim, kernels::column_panel);
  for (extent q = 0; q < pass.count(); ++q) {
    const float sum = pass.scratch().sum[q];
    const float* from = pass.scratch().out + q * columns;
    float* to = out.at(batch, head, pass.first() + q);
    for (extent d = 0; d < value_dim; ++d) to[d] = sum == 0.0f ? 0.0f : from[d] / sum;
  }
}

void write_log_sum_exp(const query_tile_pass& pass, float* to, extent stride) {
  for (extent q = 0; q < pass.count(); ++q) {
    const float sum = pass.scratch().sum[q];
    to[(pass.first() + q) * stride] =
        sum == 0.0f ? kernels::minus_infinity : pass.scratch().max[q] + std::log(sum);
  }
}

}  // namespace

float default_scale(extent head_dim) {
  return head_dim == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

byte_count attention_workspace_bytes(extent head_dim, extent value_dim, int workers) {
  return workspace::alignment + tile_scratch::bytes(head_dim, value_dim) * workers;
}

status attention_forward(const attention_inputs& inputs, const attention_options& options,
                         const attention_outputs& outputs, workspace memory, thread_pool& pool) {
  if (const status checked = validate(inputs, options, outputs); checked != status::ok) {
    return checked;
  }
  return for_each_query_tile(
      inputs, options, memory, pool, [&](const query_tile_pass& pass, extent batch, extent head) {
        attention_fused_tile(pass);
        write_out(pass, outputs.out, batch, head);
        if (outputs.log_sum_exp) {
          write_log_sum_exp(pass, outputs.log_sum_exp.at(batch, head),
                            outputs.log_sum_exp.strides[2]);
        }
        if (outputs.weights) {
          attention_weights_tile(pass, outputs.weights.at(batch, head), outputs.weights.strides[2]);
        }
      });
}

status attention_scores(const attention_inputs& inputs, float scale, const view<float, 4>& scores,
                        workspace memory, thread_pool& pool) {
  if (const status checked = validate_key(inputs); checked != status::ok) return checked;
  const auto& [batch, num_heads, query_len, head_dim] = inputs.query.shape;
  if (scores.shape != std::array{batch, num_heads, query_len, inputs.key.shape[2]}) {
    return status::shape_mismatch;
  }
  if (!std::isfinite(scale) || !rows_are_contiguous(scores)) return status::invalid_argument;
  attention_options options;
  options.scale = scale;
  return for_each_query_tile(inputs, options, memory, pool,
                             [&](const query_tile_pass& pass, extent b, extent h) {
                               attention_scores_tile(pass, scores.at(b, h), scores.strides[2]);
                             });
}

}  // namespace qkv
