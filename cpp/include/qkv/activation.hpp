// Activations, element by element.
#pragma once

#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"

namespace qkv {

// Both forms of Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016):
//   none: x (1 + erf(x / sqrt 2)) / 2,  tanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
enum class gelu_approximation { none, tanh };

// x, out: (count), contiguous; out may be x. -Infinity gives 0, Infinity itself, NaN NaN; a result
// whose factor of x is below 2^-100 is 0. Errors: shape_mismatch, invalid_argument (strides).
status gelu_forward(view<const float, 1> x, gelu_approximation approximation, view<float, 1> out,
                    thread_pool& pool);

// x / (1 + e^-x), in the same paper and elsewhere called swish. All else as above.
status silu_forward(view<const float, 1> x, view<float, 1> out, thread_pool& pool);

// d_x = d_out times the slope of gelu at x; 0 at -Infinity and where the slope's tail is below
// 2^-100, d_out at Infinity, NaN at NaN. d_out, x, d_x: (count), contiguous; d_x may be x or d_out.
// Errors as above.
status gelu_backward(view<const float, 1> d_out, view<const float, 1> x,
                     gelu_approximation approximation, view<float, 1> d_x, thread_pool& pool);

// d_x = d_out times the slope of silu at x. All else as above.
status silu_backward(view<const float, 1> d_out, view<const float, 1> x, view<float, 1> d_x,
                     thread_pool& pool);

}  // namespace qkv
