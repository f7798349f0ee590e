// A small model of sequences that learns in the core: an embedding, positions, layers of one mixer
// and a readout, on rows x of embed_dim numbers.
//
//   x0 = embedding[token] + position
//   attention layer  x' = x + attention(x wq, y wk, y wv) wo, where y is x, or the rows of a
//   context
//                    (Vaswani et al., "Attention Is All You Need", 2017; no biases, no norms)
//   rnn, lstm, gru   x' = outputs of the cell over x, as in recurrent.hpp, with hidden = embed_dim
//   last, every      logits = x readout_weight + readout_bias
//   pointer          the weights of the row that is read, averaged over the heads of the last
//   layer,
//                    which has wq and wk only (Vinyals et al., "Pointer Networks", 2015)
//
// With a last or pointer readout the last attention layer works on the rows that are read alone.
#pragma once

#include <cstdint>

#include "qkv/adam.hpp"
#include "qkv/status.hpp"
#include "qkv/thread_pool.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv {

enum class sequence_mixer { attention, rnn, lstm, gru };

// sinusoidal: as sinusoidal() gives them. rotary: queries and keys of each layer turn, as
// rotary_forward() does with halves and base 10000.
enum class sequence_positions { none, sinusoidal, learned, rotary };

// Which projections of attention are one, or none. query_key: wk is wq. value_input: no wv, value =
// y cut into heads. all: query = x, key = value = y, no wq, wk, wv. wo always stays.
enum class sequence_ties { none, query_key, value_input, all };

// last: one row of each sequence. every: all rows. pointer: see above.
enum class sequence_readout { last, every, pointer };

// Of each gate's square block of wh. uniform: as the other weights of a cell. orthogonal: evenly
// among all orthogonal ones (Saxe et al., 2014).
enum class recurrent_start { uniform, identity, orthogonal };

struct sequence_model {
  sequence_mixer mixer = sequence_mixer::attention;
  sequence_positions positions = sequence_positions::none;  // rotary: attention, head_dim even
  sequence_ties ties = sequence_ties::none;                 // attention
  sequence_readout readout = sequence_readout::last;        // pointer: attention
  bool causal = false;                                      // attention
  bool residual = true;  // whether a layer's input is added to what it gives
  extent vocab = 0;      // tokens, from 1 to largest_sequence_axis, as the next two
  extent embed_dim = 0;
  extent classes = 0;     // pointer: not used
  extent layers = 1;      // from 1 to most_sequence_layers
  extent num_heads = 1;   // attention: divides embed_dim
  extent max_length = 0;  // learned positions: how many
};

inline constexpr extent largest_sequence_axis = 1 << 24;
inline constexpr extent most_sequence_layers = 1024;

// How parameters start. The embedding and projections are described in sequence_start.cpp; weights
// and biases of cells are uniform in +-1 / sqrt(hidden).
struct sequence_starts {
  std::uint64_t seed = 0;
  recurrent_start recurrent = recurrent_start::uniform;  // cells
  // lstm: the sum of both forget biases (Jozefowicz et al., 2015). Not used with a chrono_length.
  double forget_bias = 1;
  // lstm: b_f = ln u, b_i = -b_f with u uniform between 1 and this - 1 (Tallec & Ollivier, "Can
  // recurrent neural networks warp time?", 2018); gru: b_z = ln u, since z is what keeps. From 3;
  // 0: none.
  extent chrono_length = 0;
};

// All parameters of a model lie in one block, in this order, those of a layer together. Projections
// are (embed_dim, embed_dim), wx and wh (embed_dim, gates * embed_dim), bx and bh (gates *
// embed_dim), the readout (embed_dim, classes) and (classes).
#define QKV_SEQUENCE_PARAMETER_LIST(entry)                                             \
  entry(embedding, "embedding") entry(positions, "positions") entry(wq, "layers.#.wq") \
      entry(wk, "layers.#.wk") entry(wv, "layers.#.wv") entry(wo, "layers.#.wo")       \
          entry(wx, "layers.#.wx") entry(wh, "layers.#.wh") entry(bx, "layers.#.bx")   \
              entry(bh, "layers.#.bh") entry(readout_weight, "readout.weight")         \
                  entry(readout_bias, "readout.bias")

enum class sequence_parameter_kind {
#define QKV_SEQUENCE_PARAMETER_ENUMERATOR(name, text) name,
  QKV_SEQUENCE_PARAMETER_LIST(QKV_SEQUENCE_PARAMETER_ENUMERATOR)
#undef QKV_SEQUENCE_PARAMETER_ENUMERATOR
};

struct sequence_parameter {
  sequence_parameter_kind kind = sequence_parameter_kind::embedding;
  extent layer = 0;  // 0 where it belongs to none
  extent rows = 0;   // 0: it has one axis
  extent columns = 0;
  extent offset = 0;  // of its first float in the block
};

// As in the list above; # stands for the layer.
const char* sequence_parameter_name(sequence_parameter_kind kind);

// Parameter number `index` from 0 in the order of the block. False: there are no more, or the model
// is none that can be.
bool sequence_parameter_at(const sequence_model& model, extent index, sequence_parameter& found);

// Floats of the block; 0 where the model is none that can be.
byte_count sequence_parameter_count(const sequence_model& model);

struct sequence_sizes {
  extent batch = 0;
  extent length = 0;
  extent context_length = 0;  // 0: no context
};

enum class sequence_task { start, forward, evaluate, gradients, train, weights };

// What a task takes. gradients and train grow as batch * length * embed_dim * layers (and with
// `every` as the logits); the others do not grow with the layers.
byte_count sequence_workspace_bytes(const sequence_model& model, const sequence_sizes& sizes,
                                    sequence_task task, int workers);

// Fills `parameters`. The same bits for the same model and starts on every host. Errors:
// invalid_argument (a model or starts that cannot be), out_of_memory (a workspace too small).
status sequence_start(const sequence_model& model, const sequence_starts& starts, float* parameters,
                      workspace memory);

struct sequence_inputs {
  const std::int32_t* tokens = nullptr;  // (batch, length), from 0, below vocab
  extent batch = 0;
  extent length = 0;
  // Valid tokens of each sequence, or null for all. What lies beyond is not read.
  const std::int32_t* lengths = nullptr;
  // The position that is read of each sequence, or null for its last valid one. Not with `every`.
  const std::int32_t* read_at = nullptr;
  // Attention, and not causal: what keys and values are made from, (batch, context_length).
  const std::int32_t* context = nullptr;
  extent context_length = 0;
  const std::int32_t* context_lengths = nullptr;  // as lengths
};

// output: logits, (batch, classes), with `every` (batch, length, classes), 0 beyond a sequence's
// length; or the weights of a pointer, (batch, length), or (batch, context_length) with a context.
//
// A sequence's numbers do not depend on the rest of the batch, nor any on the number of threads.
// Errors, here and below: invalid_argument (a model that cannot be; a token, length, position or
// target outside what there is; a sequence of length 0 of which one row is to be read; a context
// that is causal or a cell's; longer sequences than there are learned positions), out_of_memory (a
// workspace too small).
status sequence_forward(const sequence_model& model, const float* parameters,
                        const sequence_inputs& inputs, float* output, workspace memory,
                        thread_pool& pool);

// weights: (layers, batch, num_heads, length, length or context_length), of every row, attention
// only. 0 beyond the lengths of queries and keys.
status sequence_weights(const sequence_model& model, const float* parameters,
                        const sequence_inputs& inputs, float* weights, workspace memory,
                        thread_pool& pool);

struct sequence_result {
  // The mean cross entropy of the answers; both are 0 where there are none. A pointer's weight
  // below 2^-100 counts as that.
  double loss = 0;
  double accuracy = 0;  // the share whose first largest logit or weight is the target
};

struct sequence_gradients {
  float* parameters = nullptr;  // a block as that of the parameters; null: not computed
  // (batch, length): the Euclidean norm of the loss's gradient by each row x0; null: not computed.
  // Needs the parameters' gradients too.
  float* input_norms = nullptr;
};

// targets: a class, or the position of a key, for each sequence, (batch); with `every` (batch,
// length), where -1 asks for no answer, as does what lies beyond a sequence's length.
status sequence_loss(const sequence_model& model, const float* parameters,
                     const sequence_inputs& inputs, const std::int32_t* targets,
                     sequence_result& result, const sequence_gradients& gradients, workspace memory,
                     thread_pool& pool);

// Where a step could not be made.
struct sequence_fault {
  enum class in { nothing, loss, gradient, parameter, new_parameter };
  in what = in::nothing;
  extent element = 0;  // of the block
  float value = 0;
};

// What goes from step to step. Blocks as that of the parameters; the moments 0 before the first
// step, the gradients anything.
struct sequence_training {
  float* gradients = nullptr;
  adam_options optimizer;
  adam_state state;
  // Whether a loss or a new parameter that is not finite is an error. A gradient always is.
  bool check = false;
};

// sequence_loss() and adam_step(). Errors, with parameters and moments as they were: as above;
// invalid_argument with a fault that says where a number is that no step can be made with.
status sequence_train_step(const sequence_model& model, float* parameters,
                           const sequence_inputs& inputs, const std::int32_t* targets,
                           sequence_training& training, sequence_result& result,
                           sequence_fault& fault, workspace memory, thread_pool& pool);

}  // namespace qkv
