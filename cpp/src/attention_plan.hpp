// Cuts an attention problem into sequences, heads and tiles of queries, and shares them out.
#pragma once

#include "attention_tile.hpp"

namespace qkv {

struct attention_sizes {
  extent batch, num_heads, query_len, key_len, head_dim, value_dim, heads_per_kv_head;

  explicit attention_sizes(const attention_inputs& inputs)
      : batch(inputs.query.shape[0]),
        num_heads(inputs.query.shape[1]),
        query_len(inputs.query.shape[2]),
        key_len(inputs.key.shape[2]),
        head_dim(inputs.query.shape[3]),
        value_dim(inputs.value.shape[3]),
        // 1 where there are no heads of either kind: it is divided by.
        heads_per_kv_head(
            std::max<extent>(1, num_heads / std::max<extent>(1, inputs.key.shape[1]))) {}
};

// Queries and keys that see one another: a batch, or one of the packed sequences of the only batch.
struct attention_sequence {
  extent batch;
  extent query_begin, query_end;
  extent key_begin, key_end;
  extent query_offset;

  extent query_len() const { return query_end - query_begin; }
  extent key_len() const { return key_end - key_begin; }
};

// A tile of rows to work on, which are queries, counted from their sequence's begin; where several
// heads lie side by side, those of one head after another. `repeat` is the first head, as a rule.
struct tile_task {
  attention_sequence sequence;
  extent repeat;
  extent first;
  extent count;
};

class attention_plan {
 public:
  attention_plan(const attention_inputs& inputs, const attention_options& options)
      : inputs_(inputs), options_(options), sizes_(inputs) {}

  const attention_sizes& sizes() const { return sizes_; }

  // Packed sequences differ in length and so count as one task each; a batch is cut into tiles.
  extent sequences() const { return packed() ? options_.sequences.count : sizes_.batch; }
  attention_sequence sequence(extent number) const;
  // The numbers of a batch's sequences.
  key_range sequences_of(extent batch) const {
    return packed() ? key_range{0, options_.sequences.count} : key_range{batch, batch + 1};
  }
  // The sequence that a query of a batch belongs to.
  attention_sequence sequence_of(extent batch, extent query) const;

  attention_head head(const attention_sequence& sequence, extent head) const;

  // How many heads' queries go through the tiles as one: those of all heads that read the same keys
  // where they are few, so that each key is read once for them all. 1 where there are rules for
  // pairs, which differ by head.
  extent heads_side_by_side() const;

  // Tasks of `repeats` times the tiles of each sequence, with `heads` heads side by side.
  extent tasks(extent repeats, extent heads) const {
    return sequences() * repeats * tiles_of(heads);
  }
  // The first tile of one of them.
  tile_task task(extent number, extent repeats, extent heads) const;

  // Runs body(task, worker) on every tile of rows, `repeats` times over.
  template <typename Body>
  void for_each_tile(extent repeats, thread_pool& pool, const Body& body, extent heads = 1) const {
    pool.run(tasks(repeats, heads), [&](extent number, int worker) {
      tile_task tile = task(number, repeats, heads);
      const extent end = packed() ? tile.sequence.query_len() * heads : tile.first + tile.count;
      for (; tile.first < end; tile.first += query_tile) {
        tile.count = std::min(query_tile, end - tile.first);
        body(tile, worker);
      }
    });
  }

  bool packed() const { return options_.sequences.count > 0; }

 private:
  // Whether its position alone decides which keys a query sees, and how.
  bool plain() const;
  extent tiles_of(extent heads) const {
    return packed() ? 1 : kernels::panels(sizes_.query_len * heads, query_tile);
  }

  const attention_inputs& inputs_;
  const attention_options& options_;
  attention_sizes sizes_;
};

}  // namespace qkv
