#include "sequence_rows.hpp"

#include <cmath>

#include "kernels/adam_row.hpp"
#include "kernels/row.hpp"
#include "qkv/embedding.hpp"
#include "qkv/positional.hpp"

namespace qkv {

namespace {

using kind = sequence_parameter_kind;

// Floats of one task.
constexpr extent float_block = 4096;

// What lies beyond a sequence's length becomes token 0, whose rows nothing reads.
void copy_tokens(const std::int32_t* tokens, const std::int32_t* lengths, extent batch,
                 extent length, std::int32_t* to) {
  for (extent b = 0; b < batch; ++b) {
    const extent valid = lengths != nullptr ? lengths[b] : length;
    std::fill_n(std::copy_n(tokens + b * length, valid, to + b * length), length - valid, 0);
  }
}

// rows: (batch, length, embed_dim), to which position t's row of the table is added.
void add_positions(sequence_run& run, view<const float, 2> table, float* rows, extent length) {
  const extent dim = table.shape[1];
  run.pool.run(run.plan.sizes.batch, [&](extent b, int) {
    kernels::add_row(table.data, length * dim, rows + b * length * dim);
  });
}

}  // namespace

void add_floats(const float* from, extent count, float* to, thread_pool& pool) {
  pool.run((count + float_block - 1) / float_block, [&](extent task, int) {
    const extent begin = task * float_block;
    kernels::add_row(from + begin, std::min(float_block, count - begin), to + begin);
  });
}

row_memory take_rows(const sequence_plan& plan, workspace& memory) {
  const auto& [model, sizes, task] = plan;
  const extent all_rows = plan.context_rows() + plan.rows(), dim = model.embed_dim;
  row_memory made{};
  made.tokens = memory.integers(all_rows);
  // Of each full layer's input and of the last one's output, or of the two at hand.
  const extent all_places = plan.full_layers() + 1;
  const extent places = plan.keeps() ? all_places : std::min<extent>(all_places, 2);
  made.context = memory.floats(plan.context_rows() + places * plan.rows(), dim);
  made.x = {made.context + plan.context_rows() * dim, plan.rows() * dim, places};
  if (model.positions == sequence_positions::sinusoidal) {
    made.sinusoids = memory.floats(plan.longest(), dim);
  }
  if (!plan.keeps()) return made;
  if (model.positions == sequence_positions::learned) {
    made.positions = memory.integers(all_rows);
  }
  made.d_context = memory.floats(all_rows, dim);
  made.d_x = made.d_context + plan.context_rows() * dim;
  return made;
}

byte_count rows_scratch_bytes(const sequence_plan& plan) {
  if (!plan.keeps()) return 0;
  const extent count = plan.context_rows() + plan.rows();
  const extent table_rows = std::max(plan.model.vocab, plan.model.max_length);
  return embedding_backward_workspace_bytes(count, table_rows);
}

void embed_rows(sequence_run& run, const row_memory& memory) {
  const auto& [model, sizes, task] = run.plan;
  const sequence_inputs& inputs = run.inputs;
  const extent context_rows = run.plan.context_rows();
  copy_tokens(inputs.context, inputs.context_lengths, sizes.batch, sizes.context_length,
              memory.tokens);
  copy_tokens(inputs.tokens, inputs.lengths, sizes.batch, sizes.length,
              memory.tokens + context_rows);
  run.note(embedding_forward(run.weight(kind::embedding), memory.tokens,
                             run.rows(memory.context, context_rows + run.plan.rows())));
  view<const float, 2> table = run.weight(kind::positions);
  if (memory.sinusoids != nullptr) {
    const auto made = run.rows(memory.sinusoids, run.plan.longest());
    run.note(sinusoidal(made));
    table = made;
  }
  if (!table) return;
  add_positions(run, table, memory.context, sizes.context_length);
  add_positions(run, table, memory.x.of(0), sizes.length);
}

void embed_rows_backward(sequence_run& run, const row_memory& memory) {
  const extent context_rows = run.plan.context_rows(), all_rows = context_rows + run.plan.rows();
  const view<const float, 2> d_rows = run.rows(memory.d_context, all_rows);
  run.note(embedding_backward(d_rows, memory.tokens, run.d_weight(kind::embedding), run.scratch,
                              run.pool));
  if (memory.positions == nullptr) return;
  for (extent row = 0; row < all_rows; ++row) {
    const extent position = row < context_rows ? row % run.plan.sizes.context_length
                                               : (row - context_rows) % run.plan.sizes.length;
    memory.positions[row] = static_cast<std::int32_t>(position);
  }
  run.note(embedding_backward(d_rows, memory.positions, run.d_weight(kind::positions), run.scratch,
                              run.pool));
}

void row_norms(sequence_run& run, const float* d_x, float* norms) {
  const extent dim = run.plan.model.embed_dim, length = run.plan.sizes.length;
  run.pool.run(run.plan.sizes.batch, [&](extent b, int) {
    for (extent row = b * length; row < (b + 1) * length; ++row) {
      norms[row] = static_cast<float>(std::sqrt(kernels::sum_of_squares(d_x + row * dim, dim)));
    }
  });
}

}  // namespace qkv
