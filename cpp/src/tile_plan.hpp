// Tile sizes and task split of attention: the only heuristics.
#pragma once

#include "kernels/gemm_kernel.hpp"

namespace qkv {

// Queries of one task, in panels of kernels::column_panel: enough to make packing the keys and
// values of a tile a small share of the work, and few enough to share out a short sequence.
inline constexpr extent query_tile = 128;

// Keys scored before their weights are applied: one panel of scores (256 x 8) stays in the first
// cache with the panels that make it, and row sums are sums of blocks, which keeps long rows exact.
inline constexpr extent key_tile = 256;

// Tiles of keys are shared out too where workers would have nothing to do else, unless all of it is
// less work than waking them: so many products.
inline constexpr extent fewest_products = 1 << 19;

// Of so many rows what tiles of keys gave is held at once then.
inline constexpr extent held_rows = 256;

static_assert(query_tile % kernels::column_panel == 0 && key_tile % kernels::row_panel == 0);

}  // namespace qkv
