// Rows of a table: learned embeddings, learned positions.
#pragma once

#include <cstdint>

#include "qkv/status.hpp"
#include "qkv/view.hpp"

namespace qkv {

// out[i] = table[indices[i]]. table: (rows, dim), indices: count numbers, out: (count, dim), last
// axes contiguous. Errors, with out untouched: shape_mismatch, invalid_argument (strides, an index
// outside the table).
status embedding_forward(view<const float, 2> table, const std::int32_t* indices,
                         view<float, 2> out);

}  // namespace qkv
