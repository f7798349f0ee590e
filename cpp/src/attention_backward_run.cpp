#include "attention_backward_run.hpp"

#include <cmath>

namespace qkv {

using kernels::padded;
using kernels::panels;

bool attention_backward_run::take(workspace& memory) {
  const attention_sizes& sizes = plan_.sizes();
  const byte_count bytes = backward_scratch::bytes(sizes.key_len, sizes.head_dim, sizes.value_dim);
  worker_floats_ = static_cast<extent>(bytes / sizeof(float));
  scratch_memory_ = memory.floats(worker_floats_, pool_.size());
  for (float** statistic : {&max_, &inverse_, &mean_}) {
    *statistic = memory.floats(sizes.batch * sizes.num_heads, sizes.query_len);
    if (*statistic == nullptr) return false;
  }
  return scratch_memory_ != nullptr;
}

backward_scratch attention_backward_run::scratch(int worker) const {
  const attention_sizes& sizes = plan_.sizes();
  workspace own(scratch_memory_ + worker * worker_floats_,
                static_cast<byte_count>(worker_floats_) * sizeof(float));
  return backward_scratch::take(own, sizes.key_len, sizes.head_dim, sizes.value_dim);
}

head_rows attention_backward_run::d_out_rows(const attention_sequence& part, extent head) const {
  return {d_out_.at(part.batch, head, part.query_begin), d_out_.strides[2]};
}

void attention_backward_run::clear_keys() {
  const auto clear = [](const view<float, 4>& rows, extent batch, extent head) {
    for (extent row = 0; row < rows.shape[2]; ++row) {
      std::fill_n(rows.at(batch, head, row), rows.shape[3], 0.0f);
    }
  };
  const extent kv_heads = gradients_.d_key.shape[1];
  pool_.run(plan_.sizes().batch * kv_heads, [&](extent task, int) {
    clear(gradients_.d_key, task / kv_heads, task % kv_heads);
    clear(gradients_.d_value, task / kv_heads, task % kv_heads);
  });
}

void attention_backward_run::add_to_keys(const backward_tile_pass& pass,
                                         const attention_sequence& part, extent head,
                                         extent first_key, extent keys) const {
  const extent kv_head = head / plan_.sizes().heads_per_kv_head;
  const auto rows = [&](const view<float, 4>& to) {
    return kernels::result_matrix{to.at(part.batch, kv_head, part.key_begin), to.strides[2]};
  };
  pass.add_to_keys(first_key, keys, rows(gradients_.d_key), rows(gradients_.d_value));
}

void attention_backward_run::differentiate_rows(const tile_task& task,
                                                const backward_scratch& tiles, bool with_keys) {
  const attention_sequence& part = task.sequence;
  const attention_head head = plan_.head(part, task.repeat);
  const extent columns = padded(head.head_dim, kernels::column_panel);
  backward_tile_pass pass(head, d_out_rows(part, task.repeat), tiles, task.first, task.count);
  std::fill_n(tiles.d_query, padded(task.count, kernels::column_panel) * columns, 0.0f);
  pass.gather();
  pass.tile().for_each_key_tile({0, head.key_len}, [&](extent first_key, extent keys) {
    pass.differentiate(first_key, keys, gradients_of::products);
    pass.add_to_query(first_key, keys);
    if (with_keys) add_to_keys(pass, part, task.repeat, first_key, keys);
  });
  for (extent q = 0; q < task.count; ++q) {
    const extent query = part.query_begin + task.first + q;
    std::copy_n(tiles.d_query + q * columns, head.head_dim,
                gradients_.d_query.at(part.batch, task.repeat, query));
  }
  const std::uint64_t first_row = head.first_row + task.first;
  std::copy_n(tiles.tiles.max, task.count, max_ + first_row);
  std::copy_n(tiles.inverse, task.count, inverse_ + first_row);
  std::copy_n(tiles.mean, task.count, mean_ + first_row);
}

// Sums of fewest products need as many key heads as workers; with too few of them, seven products
// shared out well take less time than five shared out badly.
bool attention_backward_run::key_heads_suffice() const {
  const extent tasks = plan_.sequences() * gradients_.d_key.shape[1], workers = pool_.size();
  return 5 * panels(tasks, workers) * workers <= 7 * tasks;
}

void attention_backward_run::by_key_heads() {
  clear_keys();
  const extent kv_heads = gradients_.d_key.shape[1];
  const extent group = plan_.sizes().heads_per_kv_head;
  pool_.run(plan_.sequences() * kv_heads, [&](extent task, int worker) {
    const attention_sequence part = plan_.sequence(task / kv_heads);
    const extent first_head = task % kv_heads * group, length = part.query_end - part.query_begin;
    const backward_scratch tiles = scratch(worker);
    for (extent head = first_head; head < first_head + group; ++head) {
      for (extent first = 0; first < length; first += query_tile) {
        differentiate_rows({part, head, first, std::min(query_tile, length - first)}, tiles, true);
      }
    }
  });
}

// Runs body(pass, part, first_key, keys) on the tiles of some queries and keys of a batch, counted
// along the whole axes, in order.
template <typename Body>
void attention_backward_run::recall_tiles(extent batch, extent head_index, key_range queries,
                                          key_range keys, const backward_scratch& tiles,
                                          gradients_of what, const Body& body) const {
  const auto clip = [](key_range range, extent begin, extent end) {
    return key_range{std::max(range.begin, begin) - begin, std::min(range.end, end) - begin};
  };
  const key_range sequences = plan_.sequences_of(batch);
  for (extent number = sequences.begin; number < sequences.end; ++number) {
    const attention_sequence part = plan_.sequence(number);
    const key_range rows = clip(queries, part.query_begin, part.query_end);
    const key_range columns = clip(keys, part.key_begin, part.key_end);
    if (columns.empty()) continue;
    const attention_head head = plan_.head(part, head_index);
    for (extent first = rows.begin; first < rows.end; first += query_tile) {
      const extent count = std::min(query_tile, rows.end - first);
      backward_tile_pass pass(head, d_out_rows(part, head_index), tiles, first, count);
      std::copy_n(max_ + head.first_row + first, count, tiles.tiles.max);
      std::copy_n(inverse_ + head.first_row + first, count, tiles.inverse);
      std::copy_n(mean_ + head.first_row + first, count, tiles.mean);
      pass.tile().for_each_key_tile(columns, [&](extent first_key, extent count_of_keys) {
        pass.recall(first_key, count_of_keys);
        pass.differentiate(first_key, count_of_keys, what);
        body(pass, part, first_key, count_of_keys);
      });
    }
  }
}

void attention_backward_run::by_tiles() {
  clear_keys();
  const attention_sizes& sizes = plan_.sizes();
  plan_.for_each_tile(sizes.num_heads, pool_, [&](const tile_task& task, int worker) {
    differentiate_rows(task, scratch(worker), false);
  });
  const extent kv_heads = gradients_.d_key.shape[1], key_tiles = panels(sizes.key_len, key_tile);
  pool_.run(sizes.batch * kv_heads * key_tiles, [&](extent task, int worker) {
    const extent first = task % key_tiles * key_tile, kv_head = task / key_tiles % kv_heads;
    const extent first_head = kv_head * sizes.heads_per_kv_head;
    for (extent head = first_head; head < first_head + sizes.heads_per_kv_head; ++head) {
      recall_tiles(
          task / key_tiles / kv_heads, head, {0, sizes.query_len}, {first, first + key_tile},
          scratch(worker), gradients_of::products,
          [&](const backward_tile_pass& pass, const attention_sequence& part, extent first_key,
              extent keys) { add_to_keys(pass, part, head, first_key, keys); });
    }
  });
}

// A task owns a part of d_bias. Axes that the bias is broadcast along are summed within it.
void attention_backward_run::sum_bias() {
  const view<float, 4>& to = gradients_.d_bias;
  const std::array tile_lengths{extent{1}, extent{1}, query_tile, key_tile};
  const auto parts = [&](int axis) {
    return to.strides[axis] == 0 ? 1 : panels(to.shape[axis], tile_lengths[axis]);
  };
  const extent batches = parts(0), heads = parts(1), rows = parts(2), columns = parts(3);
  pool_.run(batches * heads * rows * columns, [&](extent task, int worker) {
    const auto own = [&](int axis, extent part) -> key_range {
      if (to.strides[axis] == 0) return {0, to.shape[axis]};
      const extent first = part * tile_lengths[axis];
      return {first, std::min(first + tile_lengths[axis], to.shape[axis])};
    };
    const key_range batch = own(0, task / columns / rows / heads);
    const key_range head = own(1, task / columns / rows % heads);
    const key_range query = own(2, task / columns % rows), key = own(3, task % columns);
    clear_bias(batch, head, query, key);
    for (extent b = batch.begin; b < batch.end; ++b) {
      for (extent h = head.begin; h < head.end; ++h) {
        recall_tiles(
            b, h, query, key, scratch(worker), gradients_of::biased,
            [&](const backward_tile_pass& pass, const attention_sequence& part, extent first_key,
                extent keys) { add_to_bias(pass, part, h, first_key, keys); });
      }
    }
  });
}

void attention_backward_run::clear_bias(key_range batches, key_range heads, key_range queries,
                                        key_range keys) const {
  const view<float, 4>& to = gradients_.d_bias;
  // A broadcast axis has one element, even where the scores have none.
  const auto elements = [&](int axis, key_range range) {
    return to.strides[axis] == 0 ? key_range{0, 1} : range;
  };
  const key_range columns = elements(3, keys), rows = elements(2, queries);
  for (extent b = elements(0, batches).begin; b < elements(0, batches).end; ++b) {
    for (extent h = elements(1, heads).begin; h < elements(1, heads).end; ++h) {
      for (extent row = rows.begin; row < rows.end; ++row) {
        std::fill_n(to.at(b, h, row, columns.begin), columns.end - columns.begin, 0.0f);
      }
    }
  }
}

void attention_backward_run::add_to_bias(const backward_tile_pass& pass,
                                         const attention_sequence& sequence, extent head,
                                         extent first_key, extent keys) const {
  const view<float, 4>& to = gradients_.d_bias;
  pass.tile().for_each_part(first_key, keys, [&](const kernels::panel_range& part) {
    const float* gradients = pass.gradients(part);
    float* rows = to.at(sequence.batch, head, sequence.query_begin + part.first_query,
                        sequence.key_begin + part.first_key);
    if (to.strides[3] != 0) {
      kernels::unpack_panel(gradients, part.keys, part.queries, rows, to.strides[2],
                            kernels::write::add);
      return;
    }
    for (extent q = 0; q < part.queries; ++q) {
      float sum = 0.0f;
      for (extent j = 0; j < part.keys; ++j) sum += gradients[j * kernels::column_panel + q];
      rows[q * to.strides[2]] += sum;
    }
  });
}

// The sink's weight is one of each row's, with a d_weight of 0.
void attention_backward_run::sum_sinks() {
  const attention_sizes& sizes = plan_.sizes();
  pool_.run(sizes.num_heads, [&](extent head, int) {
    const float sink = options_.sinks[head];
    double sum = 0;
    for (extent b = 0; sink != kernels::minus_infinity && b < sizes.batch; ++b) {
      for (extent i = 0; i < sizes.query_len; ++i) {
        const extent row = (b * sizes.num_heads + head) * sizes.query_len + i;
        sum -= std::exp(sink - max_[row]) * inverse_[row] * mean_[row];
      }
    }
    gradients_.d_sinks[head] = static_cast<float>(sum);
  });
}

}  // namespace qkv
