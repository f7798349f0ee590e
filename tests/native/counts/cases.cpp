#include "counts/cases.hpp"

#include <memory>

#include "kernels/gemm.hpp"
#include "kernels/online_softmax.hpp"
#include "qkv/qkv.hpp"
#include "support/random.hpp"

namespace qkv::test {

namespace {

using numbers = std::vector<float>;

// One that starts no thread, so that everything is counted where it is called.
thread_pool& caller_only() {
  static thread_pool pool(1);
  return pool;
}

numbers some(extent count) { return number_source(1).floats(count); }

view<float, 2> matrix(numbers& data, extent rows) {
  return view<float, 2>::contiguous(data.data(), {rows, std::ssize(data) / rows});
}

workspace whole(numbers& memory) { return {memory.data(), memory.size() * sizeof(float)}; }

numbers reserve(byte_count bytes) { return numbers(bytes / sizeof(float) + 1); }

std::function<void()> gemm_kernel_of_four_rows() {
  using namespace kernels;
  return [a = some(row_panel * depth_block), b = some(depth_block * column_panel),
          tile = numbers(row_panel * column_panel)]() mutable {
    gemm_kernel<row_panel, panel_vectors>(depth_block, a.data(), row_panel, b.data(), column_panel,
                                          tile.data(), column_panel, write::store);
  };
}

std::function<void()> block_softmax_of(extent keys) {
  using namespace kernels;
  return [=, scores = some(keys * column_panel), max = numbers(column_panel),
          sum = numbers(column_panel)]() mutable {
    block_softmax(scores.data(), keys, {max.data(), sum.data()});
  };
}

std::function<void()> linear(extent rows, extent in_dim, extent out_dim) {
  return [=, x = some(rows * in_dim), weight = some(in_dim * out_dim), bias = some(out_dim),
          out = numbers(rows * out_dim),
          memory = reserve(linear_workspace_bytes(in_dim, out_dim, 1))]() mutable {
    linear_forward(matrix(x, rows), matrix(weight, in_dim), bias.data(), matrix(out, rows),
                   whole(memory), caller_only());
  };
}

struct attention_sizes {
  extent heads, kv_heads, queries, keys;
  extent dim = 64;
};

using change = std::function<void(attention_options&)>;

// With `weights` they are computed too.
std::function<void()> attention(const attention_sizes& sizes, const change& set = {},
                                bool weights = false) {
  const auto [heads, kv_heads, queries, keys, dim] = sizes;
  attention_options options;
  options.scale = default_scale(dim);
  if (set) set(options);
  return [=, query = some(heads * queries * dim), key = some(kv_heads * keys * dim),
          value = some(kv_heads * keys * dim), out = numbers(heads * queries * dim),
          weight = numbers(weights ? heads * queries * keys : 0),
          memory = reserve(attention_workspace_bytes(dim, dim, 1) +
                           attention_statistics_bytes(1, heads, queries))]() mutable {
    const auto as = [](numbers& data, extent head_count, extent length, extent columns) {
      return view<float, 4>::contiguous(data.data(), {1, head_count, length, columns});
    };
    attention_outputs outputs;
    outputs.out = as(out, heads, queries, dim);
    if (!weight.empty()) outputs.weights = as(weight, heads, queries, keys);
    attention_forward({as(query, heads, queries, dim), as(key, kv_heads, keys, dim),
                       as(value, kv_heads, keys, dim)},
                      options, outputs, whole(memory), caller_only());
  };
}

std::function<void()> attention_back(const attention_sizes& sizes, const change& set = {}) {
  const auto [heads, kv_heads, queries, keys, dim] = sizes;
  attention_options options;
  options.scale = default_scale(dim);
  if (set) set(options);
  return [=, query = some(heads * queries * dim), key = some(kv_heads * keys * dim),
          d_query = numbers(heads * queries * dim), d_key = numbers(kv_heads * keys * dim),
          d_value = numbers(kv_heads * keys * dim), memory = numbers()]() mutable {
    const auto as = [&](numbers& data, extent head_count, extent length) {
      return view<float, 4>::contiguous(data.data(), {1, head_count, length, dim});
    };
    const auto rows = as(query, heads, queries), key_rows = as(key, kv_heads, keys);
    const attention_inputs inputs{rows, key_rows, key_rows};
    if (memory.empty()) memory = reserve(attention_backward_workspace_bytes(inputs, 1));
    attention_backward(
        rows, inputs, options,
        {as(d_query, heads, queries), as(d_key, kv_heads, keys), as(d_value, kv_heads, keys), {}},
        whole(memory), caller_only());
  };
}

void causal(attention_options& options) { options.mask.causal = true; }

void causal_window(attention_options& options) {
  options.mask.causal = true;
  options.mask.window_left = 63;
}

// All that changes a score and needs no memory of its own.
void score_rules(attention_options& options) {
  static const float slopes[] = {0.5f, 0.25f}, sinks[] = {0.1f, 0.2f};
  options.softcap = 30.0f;
  options.alibi_slopes = slopes;
  options.sinks = sinks;
  options.dropout = {0.1f, 1};
}

// Calls `forward` with an input and an output of rows x columns.
template <typename Forward>
std::function<void()> rows_by(extent rows, extent columns, Forward forward) {
  return [=, x = some(rows * columns), out = numbers(rows * columns)]() mutable {
    forward(matrix(x, rows), matrix(out, rows));
  };
}

// The same over numbers without rows.
template <typename Forward>
std::function<void()> elements(extent count, Forward forward) {
  return [=, x = some(count), out = numbers(count)]() mutable {
    forward(view<const float, 1>::contiguous(x.data(), {count}),
            view<float, 1>::contiguous(out.data(), {count}));
  };
}

std::function<void()> rotary(extent length, extent dim) {
  return [=, x = some(length * dim), cosines = some(length * dim / 2),
          sines = some(length * dim / 2), out = numbers(length * dim)]() mutable {
    const auto as = [&](numbers& data) {
      return view<float, 4>::contiguous(data.data(), {1, 1, length, dim});
    };
    rotary_forward(as(x), {matrix(cosines, length), matrix(sines, length)}, rotary_pairing::halves,
                   as(out), caller_only());
  };
}

// One sequence, as wide as its state.
struct recurrent_problem {
  recurrent_options options;
  recurrent_sizes sizes;
  numbers x, wx, wh, outputs, h, c, trace, used, memory;
  numbers d_x = x, d_wx = wx, d_wh = wh, d_bias = numbers(columns());

  recurrent_problem(recurrent_cell cell, extent length, extent hidden)
      : options{.cell = cell},
        sizes{1, length, hidden, hidden},
        x(some(length * hidden)),
        wx(some(hidden * columns())),
        wh(some(hidden * columns())),
        outputs(length * hidden),
        h(hidden),
        c(hidden),
        trace(reserve(recurrent_trace_bytes(sizes, options))),
        memory(reserve(std::max(recurrent_workspace_bytes(sizes, options, 1),
                                recurrent_backward_workspace_bytes(sizes, options, 1)))) {}

  extent columns() const { return gates_of(options.cell) * sizes.hidden; }
  bool is_lstm() const { return options.cell == recurrent_cell::lstm; }
  view<float, 3> rows(numbers& data, extent count) const {
    return view<float, 3>::contiguous(data.data(), {1, count, sizes.hidden});
  }
  std::array<recurrent_parameters, 2> parameters() {
    return {{{matrix(wx, sizes.hidden), matrix(wh, sizes.hidden)}, {}}};
  }

  void forward(float* to_trace) {
    recurrent_forward({rows(x, sizes.length), {}, {}}, parameters(), options,
                      {rows(outputs, sizes.length), rows(h, 1),
                       is_lstm() ? rows(c, 1) : view<float, 3>{}, to_trace},
                      whole(memory), caller_only());
  }

  // Uses up a copy of the trace.
  void backward() {
    used = trace;
    recurrent_backward(
        {rows(x, sizes.length), {}, {}}, parameters(), options, used.data(),
        {rows(outputs, sizes.length)},
        {rows(d_x, sizes.length),
         {},
         {},
         {{{matrix(d_wx, sizes.hidden), matrix(d_wh, sizes.hidden), d_bias.data()}, {}}}},
        whole(memory), caller_only());
  }
};

std::function<void()> recurrent(recurrent_cell cell, extent length, extent hidden) {
  return [one = recurrent_problem(cell, length, hidden)]() mutable { one.forward(nullptr); };
}

std::function<void()> recurrent_back(recurrent_cell cell, extent length, extent hidden) {
  recurrent_problem one(cell, length, hidden);
  one.forward(one.trace.data());
  return [one]() mutable { one.backward(); };
}

}  // namespace

std::vector<counted_case> counted_cases() {
  thread_pool& pool = caller_only();
  return {
      {"gemm kernel, 4 rows, depth 256", gemm_kernel_of_four_rows()},
      {"block softmax, 128 keys", block_softmax_of(128)},
      {"linear 64 x 256 x 64", linear(64, 256, 64)},
      {"linear 3 x 100 x 50", linear(3, 100, 50)},
      {"linear 1 x 256 x 256", linear(1, 256, 256)},
      {"attention 2 x 150 x 64", attention({2, 2, 150, 150})},
      {"attention 1 x 20 x 20", attention({1, 1, 20, 20, 20})},
      {"attention 1 x 500 x 64, causal", attention({1, 1, 500, 500}, causal)},
      {"attention 1 x 500 x 64, causal window of 64", attention({1, 1, 500, 500}, causal_window)},
      {"attention 4 x 64 x 64, 1 key head", attention({4, 1, 64, 64})},
      {"attention 2 x 64 x 64, rules of scores", attention({2, 2, 64, 64}, score_rules)},
      {"attention 2 x 64 x 64, weights wanted", attention({2, 2, 64, 64}, {}, true)},
      {"attention, 1 query on 500 keys", attention({1, 1, 1, 500})},
      {"attention, 1 query of 4 heads on 500 keys", attention({4, 1, 1, 500})},
      {"attention, 3 queries on 500 keys", attention({1, 1, 3, 500})},
      {"attention backward 2 x 150 x 64", attention_back({2, 2, 150, 150})},
      {"attention backward 1 x 500 x 64, causal", attention_back({1, 1, 500, 500}, causal)},
      {"attention backward 2 x 64 x 64, 1 key head, rules of scores",
       attention_back({2, 1, 64, 64}, score_rules)},
      {"softmax 16 x 100",
       rows_by(16, 100, [&](auto x, auto out) { softmax_forward(x, out, nullptr, pool); })},
      {"layer norm 16 x 100", rows_by(16, 100,
                                      [&](auto x, auto out) {
                                        layer_norm_forward(x, nullptr, nullptr, 1e-5f, out, pool);
                                      })},
      {"rms norm 16 x 100",
       rows_by(16, 100, [&](auto x, auto out) { rms_norm_forward(x, nullptr, 1e-5f, out, pool); })},
      {"gelu of 1000",
       elements(1000,
                [&](auto x, auto out) { gelu_forward(x, gelu_approximation::none, out, pool); })},
      {"gelu of 1000, tanh",
       elements(1000,
                [&](auto x, auto out) { gelu_forward(x, gelu_approximation::tanh, out, pool); })},
      {"silu of 1000", elements(1000, [&](auto x, auto out) { silu_forward(x, out, pool); })},
      {"rotary 50 x 64", rotary(50, 64)},
      {"rnn, 1 step of 64", recurrent(recurrent_cell::rnn, 1, 64)},
      {"rnn, 20 steps of 64", recurrent(recurrent_cell::rnn, 20, 64)},
      {"lstm, 20 steps of 64", recurrent(recurrent_cell::lstm, 20, 64)},
      {"gru, 20 steps of 64", recurrent(recurrent_cell::gru, 20, 64)},
      {"rnn backward, 20 steps of 64", recurrent_back(recurrent_cell::rnn, 20, 64)},
      {"lstm backward, 20 steps of 64", recurrent_back(recurrent_cell::lstm, 20, 64)},
      {"gru backward, 20 steps of 64", recurrent_back(recurrent_cell::gru, 20, 64)},
  };
}

}  // namespace qkv::test
