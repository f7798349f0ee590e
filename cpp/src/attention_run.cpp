#include "attention_run.hpp"

#include <cmath>

#include "kernels/row.hpp"

namespace qkv {

bool attention_run::take(workspace& memory) {
  const attention_sizes& sizes = plan_.sizes();
  const byte_count bytes = tile_scratch::bytes(sizes.head_dim, sizes.value_dim);
  worker_floats_ = static_cast<extent>(bytes / sizeof(float));
  scratch_memory_ = memory.floats(worker_floats_, pool_.size());
  if (scratch_memory_ == nullptr) return false;
  if (!outputs_.weights && !outputs_.mean_weights) return true;
  row_max_ = memory.floats(sizes.batch * sizes.num_heads, sizes.query_len);
  row_sum_ = memory.floats(sizes.batch * sizes.num_heads, sizes.query_len);
  return row_max_ != nullptr && row_sum_ != nullptr;
}

tile_scratch attention_run::scratch(int worker) const {
  workspace own(scratch_memory_ + worker * worker_floats_,
                static_cast<byte_count>(worker_floats_) * sizeof(float));
  return tile_scratch::take(own, plan_.sizes().head_dim, plan_.sizes().value_dim);
}

void attention_run::forward() {
  plan_.for_each_tile(plan_.sizes().num_heads, pool_, [&](const tile_task& task, int worker) {
    const attention_head head = plan_.head(task.sequence, task.repeat);
    const tile_scratch tiles = scratch(worker);
    const query_tile_pass pass(head, tiles, task.first, task.count);
    attention_fused_tile(pass);
    finish_rows(pass, task.sequence, task.repeat);
  });
}

// Divides by the sums, and by what dropout keeps. A row that saw no key has a sum of 0: zeros.
void attention_run::finish_rows(const query_tile_pass& pass, const attention_sequence& part,
                                extent head) {
  const extent value_dim = plan_.sizes().value_dim;
  const extent columns = kernels::padded(value_dim, kernels::column_panel);
  const tile_scratch& tiles = pass.scratch();
  const float kept = 1.0f - options_.dropout.probability;
  for (extent q = 0; q < pass.count(); ++q) {
    const extent query = part.query_begin + pass.first() + q;
    const float sum = tiles.sum[q];
    if (outputs_.out) {
      float* to = outputs_.out.at(part.batch, head, query);
      const simd::batch divisor = simd::broadcast(sum == 0.0f ? 1.0f : sum * kept);
      kernels::map_row(tiles.out + q * columns, value_dim, to,
                       [&](simd::batch value) { return value / divisor; });
    }
    if (outputs_.log_sum_exp) {
      outputs_.log_sum_exp(part.batch, head, query) =
          sum == 0.0f ? kernels::minus_infinity : tiles.max[q] + std::log(sum);
    }
  }
  if (row_max_ == nullptr) return;
  const std::uint64_t first_row = pass.head().first_row + pass.first();
  std::copy_n(tiles.max, pass.count(), row_max_ + first_row);
  std::copy_n(tiles.sum, pass.count(), row_sum_ + first_row);
}

void attention_run::recall_statistics(const query_tile_pass& pass) const {
  const std::uint64_t first_row = pass.head().first_row + pass.first();
  std::copy_n(row_max_ + first_row, pass.count(), pass.scratch().max);
  std::copy_n(row_sum_ + first_row, pass.count(), pass.scratch().sum);
}

// Chosen heads and queries: runs of neighbouring queries go through a tile together.
void attention_run::write_weights() {
  const auto& heads = outputs_.weight_heads;
  const auto& queries = outputs_.weight_queries;
  const attention_sizes& sizes = plan_.sizes();
  const extent head_count = heads ? heads.shape[0] : sizes.num_heads;
  const extent query_count = queries ? queries.shape[0] : sizes.query_len;
  const extent chunks = kernels::panels(query_count, query_tile);
  const auto query_at = [&](extent i) -> extent { return queries ? queries(i) : i; };
  pool_.run(sizes.batch * head_count * chunks, [&](extent task, int worker) {
    const extent batch = task / chunks / head_count, chosen = task / chunks % head_count;
    const extent head_index = heads ? heads(chosen) : chosen;
    const extent end = std::min((task % chunks + 1) * query_tile, query_count);
    const tile_scratch tiles = scratch(worker);
    for (extent i = task % chunks * query_tile, count = 1; i < end; i += count, count = 1) {
      const extent query = query_at(i);
      const attention_sequence part = plan_.sequence_of(batch, query);
      while (i + count < end && query_at(i + count) == query + count &&
             query + count < part.query_end) {
        ++count;
      }
      const attention_head head = plan_.head(part, head_index);
      const query_tile_pass pass(head, tiles, query - part.query_begin, count);
      float* rows = outputs_.weights.at(batch, chosen, i);
      const extent stride = outputs_.weights.strides[2];
      for (extent q = 0; q < count; ++q) std::fill_n(rows + q * stride, sizes.key_len, 0.0f);
      recall_statistics(pass);
      write_weights_tile(pass, rows + part.key_begin, stride, kernels::write::store);
    }
  });
}

// The heads of a tile one after another, so that their sum does not depend on threads.
void attention_run::write_mean_weights() {
  const attention_sizes& sizes = plan_.sizes();
  const auto& mean = outputs_.mean_weights;
  plan_.for_each_tile(1, pool_, [&](const tile_task& task, int worker) {
    const attention_sequence& part = task.sequence;
    const tile_scratch tiles = scratch(worker);
    float* rows = mean.at(part.batch, part.query_begin + task.first);
    const extent stride = mean.strides[1];
    for (extent q = 0; q < task.count; ++q) std::fill_n(rows + q * stride, sizes.key_len, 0.0f);
    for (extent h = 0; h < sizes.num_heads; ++h) {
      const attention_head head = plan_.head(part, h);
      const query_tile_pass pass(head, tiles, task.first, task.count);
      recall_statistics(pass);
      write_weights_tile(pass, rows + part.key_begin, stride, kernels::write::add);
    }
    // Of no heads the mean is 0, as the weights of a row that sees nothing.
    const float share = sizes.num_heads == 0 ? 0.0f : 1.0f / static_cast<float>(sizes.num_heads);
    for (extent q = 0; q < task.count; ++q) {
      for (extent j = 0; j < sizes.key_len; ++j) rows[q * stride + j] *= share;
    }
  });
}

void attention_run::write_scores() {
  plan_.for_each_tile(plan_.sizes().num_heads, pool_, [&](const tile_task& task, int worker) {
    const attention_head head = plan_.head(task.sequence, task.repeat);
    const tile_scratch tiles = scratch(worker);
    const query_tile_pass pass(head, tiles, task.first, task.count);
    float* rows = outputs_.scores.at(task.sequence.batch, task.repeat,
                                     task.sequence.query_begin + task.first);
    const extent stride = outputs_.scores.strides[2];
    for (extent q = 0; q < task.count; ++q) {
      std::fill_n(rows + q * stride, plan_.sizes().key_len, kernels::minus_infinity);
    }
    write_scores_tile(pass, outputs_.stage, rows + task.sequence.key_begin, stride);
  });
}

}  // namespace qkv
