#include "qkv/loss.hpp"

#include <algorithm>

#include "contiguous.hpp"
#include "kernels/cross_entropy_row.hpp"

namespace qkv {

byte_count cross_entropy_workspace_bytes(extent rows) { return workspace::bytes_for(rows); }

status cross_entropy(view<const float, 2> logits, const std::int32_t* targets, double& loss,
                     view<float, 2> d_logits, workspace memory, thread_pool& pool) {
  const auto [rows, classes] = logits.shape;
  if (d_logits.shape != logits.shape) return status::shape_mismatch;
  const bool are_classes = std::all_of(
      targets, targets + rows,
      [classes = classes](std::int32_t target) { return target >= 0 && target < classes; });
  if (!are_classes || !rows_are_contiguous(logits) || !rows_are_contiguous(d_logits)) {
    return status::invalid_argument;
  }
  float* losses = memory.floats(rows);
  if (losses == nullptr) return status::out_of_memory;
  const float share = 1.0f / static_cast<float>(rows);
  pool.run(rows, [&, classes = classes](extent row, int) {
    losses[row] =
        kernels::cross_entropy_row(logits.at(row), classes, targets[row], share, d_logits.at(row));
  });
  double sum = 0;
  for (extent row = 0; row < rows; ++row) sum += losses[row];
  loss = rows == 0 ? 0 : sum / static_cast<double>(rows);
  return status::ok;
}

}  // namespace qkv
