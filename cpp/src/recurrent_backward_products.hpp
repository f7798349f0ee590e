// What is left once all steps are back: products over all of their rows at once.
#pragma once

#include "qkv/recurrent_backward.hpp"
#include "recurrent_trace.hpp"

namespace qkv {

struct recurrent_products_memory {
  float *x, *d_x;    // (batch * length, input_dim) in the trace's order
  workspace linear;  // linear_products_bytes()
};

byte_count linear_products_bytes(const recurrent_plan& plan, int workers);

struct recurrent_products {
  const recurrent_inputs& inputs;
  const recurrent_parameters& parameters;  // of the direction
  const recurrent_options& options;
  const recurrent_plan& plan;
  extent direction;
  trace_rows trace;                         // from the direction's first row on
  view<float, 3> d_x;                       // to which directions but the first add
  const recurrent_parameter_gradients& to;  // of the direction
};

// All but d_peephole.
void multiply_gradients(const recurrent_products& task, const recurrent_products_memory& memory,
                        thread_pool& pool);

}  // namespace qkv
