// Cuts tiles of rows into tiles of keys, where they are too few for the workers.
#pragma once

#include "attention_plan.hpp"

namespace qkv {

// A tile of rows and one of the keys that it sees, or none.
struct split_part {
  tile_task task;
  key_range keys;
  bool first, last;  // of its tile of rows
};

class key_split {
 public:
  // As in attention_plan::tasks().
  key_split(const attention_plan& plan, extent repeats, extent heads, int workers);

  // Whether workers would be idle otherwise, for long enough.
  bool pays() const { return pays_; }

  // Parts follow one another tile of rows by tile of rows.
  extent parts() const { return tiles_ * key_tiles_; }
  split_part part(extent number) const;

  // How many parts from `first` on are made before they are merged; rows of each part.
  extent together(extent first) const;
  extent rows() const { return rows_; }

 private:
  key_range key_tiles_of(const tile_task& task) const;
  bool is_worth(int workers) const;

  const attention_plan& plan_;
  extent repeats_, heads_;
  extent tiles_;      // of rows
  extent rows_;       // of the largest
  extent key_tiles_;  // of the tile of rows that sees most
  bool pays_;
};

}  // namespace qkv
