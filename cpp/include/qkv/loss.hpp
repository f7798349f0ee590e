// What a classifier learns by.
#pragma once

#include <cstdint>

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

byte_count cross_entropy_workspace_bytes(extent rows);

// Softmax and cross-entropy at once (Bridle, 1990): loss = the mean over the rows of
//   log sum_k exp(logits_k) - logits_target
// and d_logits = (softmax(logits) - [the target]) / rows, its gradient. logits, d_logits: (rows,
// classes), last axis contiguous, not in the same place; targets: a class for each row.
//
// A logit of -Infinity is a class that cannot be: its gradient is 0, as a target it makes the loss
// Infinity, and a row of nothing else has gradients 0. NaN shows. No rows have the loss 0.
// Errors, with the outputs untouched: shape_mismatch, invalid_argument (strides, a target that is
// no class), out_of_memory (a workspace too small).
status cross_entropy(view<const float, 2> logits, const std::int32_t* targets, double& loss,
                     view<float, 2> d_logits, workspace memory, thread_pool& pool);

}  // namespace qkv
