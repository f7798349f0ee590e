// A sequence model's layers of attention.
#pragma once

#include "sequence_projections.hpp"

namespace qkv {

attention_memory take_attention(const sequence_plan& plan, workspace& memory);

// What the layers take of the scratch.
byte_count attention_scratch_bytes(const sequence_plan& plan, int workers);

// After project(), what attention_forward() takes. The values of a pointer's last layer are its
// keys, which stand in where only weights are asked for.
attention_inputs inputs_of(const sequence_run& run, const attention_memory& memory,
                           const attention_layer& layer);
attention_options options_of(const sequence_run& run, const attention_layer& layer);

// project() and attention. weights: (batch, num_heads, queries, key_len), or empty.
void mix(sequence_run& run, const attention_memory& memory, const attention_layer& layer,
         view<float, 4> weights);

// From what attention gave to the layer's output, as x.
void finish(sequence_run& run, const attention_memory& memory, const attention_layer& layer,
            float* output);

// Of mix() and finish(). d_x: on entry the gradient by the layer's output, on return that by x.
// What comes of y is added to d_y, which may be d_x.
void run_layer_backward(sequence_run& run, const attention_memory& memory,
                        const attention_layer& layer, float* d_x, float* d_y);

}  // namespace qkv
