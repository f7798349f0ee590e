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
        heads_per_kv_head(inputs.key.shape[1] == 0 ? 1 : num_heads / inputs.key.shape[1]) {}
};

// Queries and keys that see one another: a batch, or one of the packed sequences of the only batch.
struct attention_sequence {
  extent batch;
  extent query_begin, query_end;
  extent key_begin, key_end;
  extent query_offset;
};

// A tile of queries to work on, counted from its sequence's begin; `repeat` is its head, as a rule.
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

  // Runs body(task, worker) on every tile of queries, `repeats` times over.
  template <typename Body>
  void for_each_tile(extent repeats, thread_pool& pool, const Body& body) const {
    const extent tiles = packed() ? 1 : kernels::panels(sizes_.query_len, query_tile);
    pool.run(sequences() * repeats * tiles, [&](extent task, int worker) {
      const extent repeat = task / tiles % repeats;
      const attention_sequence part = sequence(task / tiles / repeats);
      const extent length = part.query_end - part.query_begin;
      extent first = task % tiles * query_tile;
      const extent end = packed() ? length : std::min(first + query_tile, length);
      for (; first < end; first += query_tile) {
        body(tile_task{part, repeat, first, std::min(query_tile, end - first)}, worker);
      }
    });
  }

 private:
  bool packed() const { return options_.sequences.count > 0; }

  const attention_inputs& inputs_;
  const attention_options& options_;
  attention_sizes sizes_;
};

}  // namespace qkv
