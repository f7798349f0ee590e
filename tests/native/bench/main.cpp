// How near the kernels come to the machine's peak: a loop of nothing but madd, in the same run.
// Contestants take turns, round after round, so that a busy machine disturbs all alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/gemm.hpp"
#include "qkv/qkv.hpp"

using namespace qkv;

namespace {

constexpr int rounds = 21;
constexpr double round_seconds = 0.02;

struct contestant {
  const char* name;
  double flops;  // of one call
  std::function<void()> call;
  int calls = 1;  // in one round
  std::vector<double> gflops{};
};

double seconds(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// Twelve chains hide the latency of a madd on all machines that we know.
constexpr int chains = 12;
constexpr extent chain_length = 512;

[[gnu::noinline]] void madd_only(float* memory) {
  std::array<simd::batch, chains> sum;
  for (int i = 0; i < chains; ++i) sum[i] = simd::load(memory + i * simd::lanes);
  const simd::batch factor = simd::constant<0.999f>(), term = simd::constant<0.001f>();
  for (extent k = 0; k < chain_length; ++k) {
    for (int i = 0; i < chains; ++i) sum[i] = simd::madd(sum[i], factor, term);
  }
  for (int i = 0; i < chains; ++i) simd::store(memory + i * simd::lanes, sum[i]);
}

std::vector<float> filled(extent count) {
  std::vector<float> values(count);
  for (extent i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) * 0.01f - 0.08f;
  return values;
}

}  // namespace

int main() {
  auto sums = filled(chains * simd::lanes);
  auto a = filled(kernels::row_panel * kernels::depth_block);
  auto b = filled(kernels::depth_block * kernels::column_panel);
  auto tile = filled(kernels::row_panel * kernels::column_panel);

  const extent rows = 512, depth = 768, columns = 768;
  auto x = filled(rows * depth), weight = filled(depth * columns), out = filled(rows * columns);
  thread_pool pool(1);
  std::vector<char> linear_memory(linear_workspace_bytes(depth, columns, 1));

  const extent heads = 12, length = 512, dim = 64;
  auto query = filled(heads * length * dim), attended = query;
  const auto as_heads = [&](float* data) {
    return view<float, 4>::contiguous(data, {1, heads, length, dim});
  };
  const attention_inputs inputs{as_heads(query.data()), as_heads(query.data()),
                                as_heads(query.data())};
  std::vector<char> attention_memory(attention_workspace_bytes(dim, dim, 1));
  auto d_query = query, d_key = query, d_value = query;
  std::vector<char> backward_memory(attention_backward_workspace_bytes(inputs, 1));

  const extent hidden = 256, steps = 512;
  auto rnn_x = filled(steps * hidden), wx = filled(hidden * hidden),
       states = filled(steps * hidden), state = filled(hidden);
  const auto square = view<const float, 2>::contiguous(wx.data(), {hidden, hidden});
  const recurrent_options rnn;
  const recurrent_sizes rnn_sizes{1, steps, hidden, hidden};
  std::vector<char> rnn_memory(recurrent_workspace_bytes(rnn_sizes, rnn, 1));
  std::vector<char> rnn_backward_memory(recurrent_backward_workspace_bytes(rnn_sizes, rnn, 1));
  std::vector<float> rnn_trace(recurrent_trace_bytes(rnn_sizes, rnn) / sizeof(float));
  auto rnn_d_x = rnn_x, d_wx = wx, d_wh = wx, d_bias = state;
  const auto as_states = [&](std::vector<float>& data, extent rows) {
    return view<float, 3>::contiguous(data.data(), {1, rows, hidden});
  };
  const auto run_rnn = [&](float* trace) {
    recurrent_forward({as_states(rnn_x, steps), {}, {}}, {{{square, square}, {}}}, rnn,
                      {as_states(states, steps), as_states(state, 1), {}, trace},
                      {rnn_memory.data(), rnn_memory.size()}, pool);
  };

  contestant contestants[] = {
      {"madd only", 2.0 * chains * simd::lanes * chain_length, [&] { madd_only(sums.data()); }},
      {"gemm_kernel 4 rows, 2 vectors, depth 256",
       2.0 * kernels::row_panel * kernels::column_panel * kernels::depth_block,
       [&] {
         kernels::gemm_kernel<kernels::row_panel, kernels::panel_vectors>(
             kernels::depth_block, a.data(), kernels::row_panel, b.data(), kernels::column_panel,
             tile.data(), kernels::column_panel, kernels::write::store);
       }},
      {"linear 512 x 768 x 768", 2.0 * rows * depth * columns,
       [&] {
         linear_forward(view<const float, 2>::contiguous(x.data(), {rows, depth}),
                        view<const float, 2>::contiguous(weight.data(), {depth, columns}), nullptr,
                        view<float, 2>::contiguous(out.data(), {rows, columns}),
                        {linear_memory.data(), linear_memory.size()}, pool);
       }},
      {"attention 12 x 512 x 64", 4.0 * heads * length * length * dim,
       [&] {
         attention_options options;
         options.scale = default_scale(dim);
         attention_outputs outputs;
         outputs.out = as_heads(attended.data());
         attention_forward(inputs, options, outputs,
                           {attention_memory.data(), attention_memory.size()}, pool);
       }},
      {"attention backward 12 x 512 x 64", 10.0 * heads * length * length * dim,
       [&] {
         attention_options options;
         options.scale = default_scale(dim);
         attention_backward(
             as_heads(query.data()), inputs, options,
             {as_heads(d_query.data()), as_heads(d_key.data()), as_heads(d_value.data()), {}},
             {backward_memory.data(), backward_memory.size()}, pool);
       }},
      {"rnn 512 steps of 256", 4.0 * steps * hidden * hidden, [&] { run_rnn(nullptr); }},
      {"rnn backward 512 steps of 256, with its forward", 12.0 * steps * hidden * hidden,
       [&] {
         run_rnn(rnn_trace.data());
         const auto d_square = [&](std::vector<float>& data) {
           return view<float, 2>::contiguous(data.data(), {hidden, hidden});
         };
         recurrent_backward({as_states(rnn_x, steps), {}, {}}, {{{square, square}, {}}}, rnn,
                            rnn_trace.data(), {as_states(states, steps)},
                            {as_states(rnn_d_x, steps),
                             {},
                             {},
                             {{{d_square(d_wx), d_square(d_wh), d_bias.data()}, {}}}},
                            {rnn_backward_memory.data(), rnn_backward_memory.size()}, pool);
       }},
  };

  for (contestant& one : contestants) {
    // Warm: until a round's worth of calls takes a round's time.
    while (seconds(one.call, one.calls) < round_seconds) one.calls *= 2;
  }
  for (int round = 0; round < rounds; ++round) {
    for (contestant& one : contestants) {
      one.gflops.push_back(one.flops * one.calls / seconds(one.call, one.calls) / 1e9);
    }
  }
  const double peak = quantile(contestants[0].gflops, 0.5);
  std::printf("| %-48s | GFLOP/s | quartiles   | of peak |\n", "one thread");
  std::printf("|%s|---------|-------------|---------|\n", std::string(50, '-').c_str());
  for (const contestant& one : contestants) {
    const double median = quantile(one.gflops, 0.5);
    std::printf("| %-48s | %7.1f | %5.1f-%5.1f | %5.0f %% |\n", one.name, median,
                quantile(one.gflops, 0.25), quantile(one.gflops, 0.75), 100 * median / peak);
  }
}
