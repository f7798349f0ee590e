// The readout whose answer is a place: the weights of one row of the last layer of attention.
#pragma once

#include "sequence_attention.hpp"

namespace qkv {

struct pointer_memory {
  float* values;            // (batch, key_len): 1 at the target, else 0
  float* target_weights;    // (batch, num_heads): what each head gives the target
  float* d_target_weights;  // backward, likewise
  float* mean_weights;      // (batch, key_len), over the heads
};

pointer_memory take_pointer(const sequence_plan& plan, workspace& memory);

// weights: (batch, key_len). targets: null where nobody asks how right they are, and result is
// then left alone.
void point(sequence_run& run, const pointer_memory& memory, const attention_memory& attention,
           const attention_layer& layer, const std::int32_t* targets, float* weights,
           sequence_result& result);

// After point() with targets. d_x: becomes the gradient by the layer's x; d_y: as
// run_layer_backward().
void point_backward(sequence_run& run, const pointer_memory& memory,
                    const attention_memory& attention, const attention_layer& layer, float* d_x,
                    float* d_y);

}  // namespace qkv
