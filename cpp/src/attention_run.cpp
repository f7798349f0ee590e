#include "attention_run.hpp"

#include <cmath>

#include "kernels/row.hpp"

namespace qkv {

namespace {

// The sink is one more logit of a row: it joins the sum and weighs no value. A row that sees no key
// stays one. Returns by what the weighed values shrink.
float join_sink(float sink, kernels::softmax_rows row) {
  if (sink == kernels::minus_infinity || *row.sum == 0.0f) return 1.0f;
  const float largest = sink > *row.max ? sink : *row.max;
  const float shrink = std::exp(*row.max - largest);
  *row.sum = *row.sum * shrink + std::exp(sink - largest);
  *row.max = largest;
  return shrink;
}

}  // namespace

bool attention_run::take(workspace& memory) {
  const attention_sizes& sizes = plan_.sizes();
  const byte_count bytes = tile_scratch::bytes(sizes.head_dim, sizes.value_dim);
  worker_floats_ = static_cast<extent>(bytes / sizeof(float));
  scratch_memory_ = memory.floats(worker_floats_, pool_.size());
  if (scratch_memory_ == nullptr) return false;
  if (pool_.size() > 1) {
    held_memory_ = memory.floats(attended_rows::floats(held_rows, sizes.value_dim));
    if (held_memory_ == nullptr) return false;
  }
  if ((!outputs_.weights || keeps_scores()) && !outputs_.mean_weights) return true;
  row_max_ = memory.floats(sizes.batch * sizes.num_heads, sizes.query_len);
  row_sum_ = memory.floats(sizes.batch * sizes.num_heads, sizes.query_len);
  return row_max_ != nullptr && row_sum_ != nullptr;
}

tile_scratch attention_run::scratch(int worker) const {
  workspace own(scratch_memory_ + worker * worker_floats_,
                static_cast<byte_count>(worker_floats_) * sizeof(float));
  return tile_scratch::take(own, plan_.sizes().head_dim, plan_.sizes().value_dim);
}

bool attention_run::keeps_scores() const {
  const view<float, 4>& weights = outputs_.weights;
  return weights && !outputs_.weight_heads && !outputs_.weight_queries &&
         weights.strides[1] == plan_.sizes().query_len * weights.strides[2];
}

attention_head attention_run::head_of(const tile_task& task) const {
  const attention_sequence& part = task.sequence;
  attention_head head = plan_.head(part, task.repeat);
  if (keeps_scores()) {
    head.scores = {outputs_.weights.at(part.batch, task.repeat, part.query_begin, part.key_begin),
                   outputs_.weights.strides[part.query_len() == 1 ? 1 : 2]};
  }
  return head;
}

void attention_run::forward() {
  const extent heads = plan_.heads_side_by_side();
  const key_split split(plan_, plan_.sizes().num_heads / heads, heads, pool_.size());
  if (split.pays()) return forward_by_keys(split);
  const auto attend = [&](const tile_task& task, int worker) {
    const attention_head head = head_of(task);
    const tile_scratch tiles = scratch(worker);
    finish_rows(task, attend_tile(query_tile_pass(head, tiles, task.first, task.count)));
  };
  plan_.for_each_tile(plan_.sizes().num_heads / heads, pool_, attend, heads);
}

// Each part of the keys by itself, then merged in order, as within a tile: the same bits.
void attention_run::forward_by_keys(const key_split& split) {
  const extent value_dim = plan_.sizes().value_dim;
  const auto held = [&](extent number) {
    const extent floats = attended_rows::floats(split.rows(), value_dim);
    return attended_rows::at(held_memory_ + number * floats, split.rows(), value_dim);
  };
  const attended_rows rows = scratch(0).attended(value_dim);
  for (extent first = 0, count = 0; first < split.parts(); first += count) {
    count = split.together(first);
    pool_.run(count, [&](extent number, int worker) {
      const split_part part = split.part(first + number);
      const attention_head head = head_of(part.task);
      const tile_scratch tiles = scratch(worker);
      attend_block(query_tile_pass(head, tiles, part.task.first, part.task.count), part.keys,
                   held(number));
    });
    for (extent number = 0; number < count; ++number) {
      const split_part part = split.part(first + number);
      if (part.first) clear_rows(rows, part.task.count);
      merge_rows(rows, held(number), part.task.count);
      if (part.last) finish_rows(part.task, rows);
    }
  }
}

void attention_run::finish_rows(const tile_task& task, const attended_rows& rows) {
  const attention_sequence& part = task.sequence;
  const attention_head head = head_of(task);
  for (extent row = 0; row < task.count; ++row) {
    const extent at = task.first + row;
    const attended_rows own = rows.from(row);
    finish_row(part.batch, task.repeat + at / part.query_len(),
               part.query_begin + at % part.query_len(), own);
    // By the row's statistics with its sink, which finish_row() has joined to them.
    if (head.scores.data != nullptr) {
      kept_scores_to_weights(head, at, own.statistics,
                             {-part.key_begin, plan_.sizes().key_len - part.key_begin});
    }
  }
}

// Divides by the sum, and by what dropout keeps. A row that saw no key has a sum of 0: zeros.
void attention_run::finish_row(extent batch, extent head, extent query, const attended_rows& row) {
  const float sink = options_.sinks != nullptr ? options_.sinks[head] : kernels::minus_infinity;
  const float shrink = join_sink(sink, row.statistics);
  const float row_max = *row.statistics.max, sum = *row.statistics.sum;
  if (outputs_.out) {
    const float kept = 1.0f - options_.dropout.probability;
    const simd::batch divisor = simd::broadcast(sum == 0.0f ? 1.0f : sum * kept);
    const simd::batch factor = simd::broadcast(shrink);
    kernels::map_row(row.out, outputs_.out.shape[3], outputs_.out.at(batch, head, query),
                     [&](simd::batch value) { return value * factor / divisor; });
  }
  if (outputs_.log_sum_exp) {
    outputs_.log_sum_exp(batch, head, query) =
        sum == 0.0f ? kernels::minus_infinity : row_max + std::log(sum);
  }
  if (row_max_ == nullptr) return;
  const extent number = (batch * plan_.sizes().num_heads + head) * plan_.sizes().query_len + query;
  row_max_[number] = row_max;
  row_sum_[number] = sum;
}

void attention_run::recall_statistics(const query_tile_pass& pass) const {
  const std::uint64_t first_row = pass.head().first_row + pass.first();
  std::copy_n(row_max_ + first_row, pass.count(), pass.scratch().max);
  std::copy_n(row_sum_ + first_row, pass.count(), pass.scratch().sum);
}

// Chosen heads and queries: runs of neighbouring queries go through a tile together.
void attention_run::write_weights() {
  if (keeps_scores()) return;
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
