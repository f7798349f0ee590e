// Softmax of rows: exp(x_j) / sum_k exp(x_k), with the row's maximum subtracted first.
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"

namespace qkv {

// x, out: (rows, columns), last axis contiguous; out may be x. log_sum_exp: null or one float a
// row, natural log. A row of -Infinity (or of no columns) gives zeros and -Infinity; a NaN makes
// its row NaN. Errors: shape_mismatch, invalid_argument (strides).
status softmax_forward(view<const float, 2> x, view<float, 2> out, float* log_sum_exp,
                       thread_pool& pool);

// d_x = out * (d_out - the row's sum of out * d_out), with out = softmax(x) made anew; 0 where x is
// -Infinity, whatever d_out is there, so that a row of nothing else has zeros. d_out, d_x: (rows,
// columns), last axis contiguous; d_x may not lie where x or d_out lie. Errors as above.
status softmax_backward(view<const float, 2> d_out, view<const float, 2> x, view<float, 2> d_x,
                        thread_pool& pool);

}  // namespace qkv
