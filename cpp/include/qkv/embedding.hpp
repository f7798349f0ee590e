// Rows of a table: learned embeddings, learned positions.
#pragma once

#include <cstdint>

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

// out[i] = table[indices[i]]. table: (rows, dim), indices: count numbers, out: (count, dim), last
// axes contiguous. Errors, with out untouched: shape_mismatch, invalid_argument (strides, an index
// outside the table).
status embedding_forward(view<const float, 2> table, const std::int32_t* indices,
                         view<float, 2> out);

// Of `count` indices into a table of `rows` rows.
byte_count embedding_backward_workspace_bytes(extent count, extent rows);

// d_table[r] = the sum of d_out[i] over all i with indices[i] = r, in rising i; zeros where there
// is none. d_out: (count, dim), indices: count numbers, d_table: (rows, dim), last axes contiguous.
// Errors as above, and out_of_memory (a workspace too small).
status embedding_backward(view<const float, 2> d_out, const std::int32_t* indices,
                          view<float, 2> d_table, workspace memory, thread_pool& pool);

}  // namespace qkv
