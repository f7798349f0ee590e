// All layers of a sequence model, one after another and back.
#pragma once

#include "sequence_attention.hpp"
#include "sequence_cells.hpp"
#include "sequence_pointer.hpp"
#include "sequence_readout.hpp"
#include "sequence_rows.hpp"

namespace qkv {

struct sequence_memory {
  row_memory rows;
  attention_memory attention;  // or
  cell_memory cells;
  pointer_memory pointer;
  readout_memory readout;
  std::int32_t* read_at;  // (batch)
  float* read_x;          // where the last layer reads: its x, (batch, embed_dim)
  float* d_read;          // backward, likewise
  workspace scratch;
};

// Where everything lies; the rest of the memory is scratch.
sequence_memory lay_out(const sequence_plan& plan, workspace memory);

byte_count scratch_bytes(const sequence_plan& plan, int workers);

// Tokens to rows, and all layers that work on every row. weights: null, or (layers, batch,
// num_heads, length, key_len), which then are all that is asked of the last layer.
void run_full_layers(sequence_run& run, const sequence_memory& memory, float* weights = nullptr);

// x after run_full_layers().
float* full_output(const sequence_run& run, const sequence_memory& memory);

// Fills readout.answered with the one row that is read of each sequence.
void choose_reads(const sequence_run& run, const sequence_memory& memory);

// The last layer of attention, where it works on the rows that are read: what it works on.
attention_layer reading_layer(sequence_run& run, const sequence_memory& memory);

// readout.rows, the first `count` of readout.answered, from where the layers end.
void read_rows(sequence_run& run, const sequence_memory& memory, extent count);

// From readout.d_rows, or from a pointer's weights, to all gradients.
void run_layers_backward(sequence_run& run, const sequence_memory& memory, extent count);

}  // namespace qkv
