#include "qkv/recurrent.hpp"

#include "contiguous.hpp"
#include "recurrent_run.hpp"

namespace qkv {

namespace {

using kernels::padded;
using kernels::panel_matrix;
using kernels::wide_panel;

// Up to so many rows in all, weights are read where they lie: packing them would cost more.
constexpr extent in_place_rows = 2;

// The weights of one direction, and how many columns each has.
constexpr int weight_matrices = 3;

struct plan : recurrent_plan {
  bool packs;

  plan(const recurrent_sizes& sizes, const recurrent_options& options)
      : recurrent_plan(sizes, options),
        packs(batch * length > in_place_rows || hidden % wide_panel != 0) {}

  // Of wx, wh and wh_candidate: (depth, columns) from column `begin` on.
  struct part {
    extent depth, begin, columns;
    extent packed_columns() const { return padded(columns, wide_panel); }
  };
  part part_of(int matrix) const {
    return matrix == 0   ? part{input_dim, 0, columns}
           : matrix == 1 ? part{hidden, 0, columns - candidates}
                         : part{hidden, columns - candidates, candidates};
  }
};

status check_outputs(const recurrent_outputs& outputs, const recurrent_options& options,
                     const plan& plan) {
  const auto& [every, h, c, trace] = outputs;
  if (every.shape != plan.output_shape() || h.shape != plan.state_shape() ||
      (c && c.shape != plan.state_shape())) {
    return status::shape_mismatch;
  }
  const bool fits = static_cast<bool>(c) == (options.cell == recurrent_cell::lstm) &&
                    rows_are_contiguous(every) && rows_are_contiguous(h) && rows_are_contiguous(c);
  return fits ? status::ok : status::invalid_argument;
}

// Memory of one direction.
struct direction_memory {
  float* packed[weight_matrices];  // null where weights are read in place
  float* rows;                     // biases, then peepholes

  static extent row_count(const plan& sizes) {
    return sizes.columns + 3 * sizes.hidden + simd::lanes;
  }

  // False where there is too little.
  bool take(const plan& sizes, workspace& memory) {
    bool enough = true;
    for (int matrix = 0; matrix < weight_matrices; ++matrix) {
      const auto part = sizes.part_of(matrix);
      packed[matrix] = sizes.packs ? memory.floats(part.depth, part.packed_columns()) : nullptr;
      enough = enough && (!sizes.packs || packed[matrix] != nullptr);
    }
    rows = memory.floats(row_count(sizes));
    return enough && rows != nullptr;
  }
};

// The matrix that the steps multiply by, packed where that pays.
panel_matrix prepare(const view<const float, 2>& weight, const plan::part& part, float* packed) {
  const float* from = weight.at(0, part.begin);
  const extent stride = weight.strides[0];
  if (packed == nullptr) return panel_matrix::in_place(from, part.depth, part.columns, stride);
  kernels::pack_columns<kernels::half_panel>(from, stride, part.depth, part.columns, packed);
  return panel_matrix::packed(packed, part.depth, part.columns);
}

recurrent_weights prepare(const recurrent_parameters& given, const recurrent_options& options,
                          const plan& sizes, const direction_memory& memory) {
  const auto matrix = [&](int i, const view<const float, 2>& weight) {
    return prepare(weight, sizes.part_of(i), memory.packed[i]);
  };
  float* bias = memory.rows;
  given.bx ? std::copy_n(given.bx, sizes.columns, bias) : std::fill_n(bias, sizes.columns, 0.0f);
  // With reset_after, bh of a gru's n belongs to a product that the reset gate scales.
  const extent joined = options.reset_after ? sizes.columns - sizes.candidates : sizes.columns;
  for (extent j = 0; given.bh != nullptr && j < joined; ++j) bias[j] += given.bh[j];
  const float* candidate_bias =
      given.bh != nullptr && joined < sizes.columns ? given.bh + joined : nullptr;
  float* peephole = nullptr;
  if (given.peephole != nullptr) {
    peephole = bias + sizes.columns;
    std::copy_n(given.peephole, 3 * sizes.hidden, peephole);
  }
  return {matrix(0, given.wx), matrix(1, given.wh),
          matrix(2, given.wh), bias,
          candidate_bias,      peephole};
}

// Floats of each piece of a worker's scratch.
struct scratch_sizes {
  extent x, gates, state;

  explicit scratch_sizes(const plan& sizes)
      : x(projected_rows * sizes.input_dim + simd::lanes),
        gates(projected_rows * sizes.columns + simd::lanes),
        state(sequence_group * state_stride(sizes.hidden)) {}

  extent all() const { return x + gates + 3 * state; }

  recurrent_scratch of(float* memory, int worker) const {
    float* at = memory + worker * all();
    return {at, at + x, at + x + gates, at + x + gates + state, at + x + gates + 2 * state};
  }
};

}  // namespace

byte_count recurrent_workspace_bytes(const recurrent_sizes& sizes, const recurrent_options& options,
                                     int workers) {
  const plan plan(sizes, options);
  byte_count bytes = workspace::bytes_for(direction_memory::row_count(plan));
  for (int matrix = 0; plan.packs && matrix < weight_matrices; ++matrix) {
    const auto part = plan.part_of(matrix);
    bytes += workspace::bytes_for(part.depth, part.packed_columns());
  }
  return static_cast<byte_count>(plan.directions) * bytes +
         workspace::bytes_for(scratch_sizes(plan).all(), workers);
}

byte_count recurrent_trace_bytes(const recurrent_sizes& sizes, const recurrent_options& options) {
  return recurrent_trace({sizes, options}).bytes(directions_of(options.direction));
}

status recurrent_forward(const recurrent_inputs& inputs,
                         const std::array<recurrent_parameters, 2>& parameters,
                         const recurrent_options& options, const recurrent_outputs& outputs,
                         workspace memory, thread_pool& pool) {
  const auto [batch, length, input_dim] = inputs.x.shape;
  const plan plan({batch, length, input_dim, parameters[0].wh.shape[0]}, options);
  status checked = check_recurrent(inputs, parameters, options, plan);
  if (checked == status::ok) checked = check_outputs(outputs, options, plan);
  if (checked != status::ok) return checked;
  std::array<direction_memory, 2> taken;
  for (extent d = 0; d < plan.directions; ++d) {
    if (!taken[d].take(plan, memory)) return status::out_of_memory;
  }
  const scratch_sizes pieces(plan);
  float* scratch = memory.floats(pieces.all(), pool.size());
  if (scratch == nullptr) return status::out_of_memory;

  std::array<recurrent_weights, 2> weights;
  pool.run(plan.directions,
           [&](extent d, int) { weights[d] = prepare(parameters[d], options, plan, taken[d]); });
  const extent groups = plan.groups();
  pool.run(plan.directions * groups, [&](extent task, int worker) {
    const extent d = task / groups, begin = task % groups * sequence_group;
    trace_rows trace;
    if (outputs.trace != nullptr) {
      trace = recurrent_trace(plan).at(outputs.trace, d, steps_before(inputs, begin));
    }
    run_sequences(
        {inputs,
         outputs,
         options,
         weights[d],
         d,
         {inputs, is_reverse(options, d), begin, std::min(sequence_group, plan.batch - begin)},
         trace},
        pieces.of(scratch, worker));
  });
  return status::ok;
}

}  // namespace qkv
