#include "qkv/embedding.hpp"

#include <algorithm>

#include "contiguous.hpp"

namespace qkv {

status embedding_forward(view<const float, 2> table, const std::int32_t* indices,
                         view<float, 2> out) {
  const auto [rows, dim] = table.shape;
  const extent count = out.shape[0];
  if (out.shape[1] != dim) return status::shape_mismatch;
  const bool inside = std::all_of(indices, indices + count, [rows = rows](std::int32_t index) {
    return index >= 0 && index < rows;
  });
  if (!inside || !rows_are_contiguous(table) || !rows_are_contiguous(out)) {
    return status::invalid_argument;
  }
  for (extent i = 0; i < count; ++i) std::copy_n(table.at(indices[i]), dim, out.at(i));
  return status::ok;
}

}  // namespace qkv
