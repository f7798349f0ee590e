#include "key_split.hpp"

namespace qkv {

key_split::key_split(const attention_plan& plan, extent repeats, extent heads, int workers)
    : plan_(plan),
      repeats_(repeats),
      heads_(heads),
      tiles_(plan.tasks(repeats, heads)),
      rows_(std::min(query_tile, plan.sizes().query_len * heads)),
      key_tiles_(0),
      pays_(false) {
  const extent shares = kernels::panels(tiles_, workers) * workers;
  // Packed sequences differ in length. A fifth of the workers may be idle.
  if (tiles_ == 0 || plan.packed() || 4 * shares <= 5 * tiles_) return;
  for (extent tile = 0; tile < tiles_; ++tile) {
    const key_range seen = key_tiles_of(plan.task(tile, repeats, heads));
    key_tiles_ = std::max(key_tiles_, seen.end - seen.begin);
  }
  pays_ = is_worth(workers);
}

bool key_split::is_worth(int workers) const {
  const attention_sizes& sizes = plan_.sizes();
  const double products = 1.0 * parts() * key_tile * rows_ * (sizes.head_dim + sizes.value_dim);
  return key_tiles_ > 1 && together(0) >= workers && products >= fewest_products;
}

key_range key_split::key_tiles_of(const tile_task& task) const {
  const attention_head head = plan_.head(task.sequence, task.repeat);
  const key_range keys = head.keys_of(task.first, task.first + task.count);
  if (keys.empty()) return {0, 0};
  return {keys.begin / key_tile, kernels::panels(keys.end, key_tile)};
}

split_part key_split::part(extent number) const {
  const tile_task task = plan_.task(number / key_tiles_, repeats_, heads_);
  const extent own = number % key_tiles_, key_len = task.sequence.key_len();
  // A tile of rows that sees less than the one that sees most is left with parts of no keys.
  const extent first_key = std::min((key_tiles_of(task).begin + own) * key_tile, key_len);
  return {
      task, {first_key, std::min(first_key + key_tile, key_len)}, own == 0, own + 1 == key_tiles_};
}

// Whole tiles of rows, or a part of one: then what was merged waits for the rest.
extent key_split::together(extent first) const {
  const extent most = held_rows / kernels::padded(rows_, kernels::column_panel);
  if (most < key_tiles_) return std::min(most, key_tiles_ - first % key_tiles_);
  return std::min(most / key_tiles_ * key_tiles_, parts() - first);
}

}  // namespace qkv
