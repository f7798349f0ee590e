#include "jobs.hpp"

#include <Eigen/Core>
#include <string>

#include "qkv/qkv.hpp"

using namespace qkv;

namespace {

thread_pool& one_thread() {
  static thread_pool pool(1);
  return pool;
}

workspace reserve(job& job, byte_count bytes) {
  job.workspace.resize(bytes);
  return {job.workspace.data(), bytes};
}

void set_attention(job& job, std::istream& words) {
  extent heads, kv_heads, queries, keys, dim, window;
  bool causal, weights;
  words >> heads >> kv_heads >> queries >> keys >> dim >> causal >> window >> weights;
  const auto input = [&](int i, extent count, extent length) {
    return view<const float, 4>::contiguous(job.inputs[i].data(), {1, count, length, dim});
  };
  const attention_inputs inputs{input(0, heads, queries), input(1, kv_heads, keys),
                                input(2, kv_heads, keys)};
  attention_options options;
  options.scale = default_scale(dim);
  options.mask.causal = causal;
  if (window > 0) options.mask.window_left = window - 1;
  attention_outputs outputs;
  outputs.out = view<float, 4>::contiguous(job.outputs[0].data(), {1, heads, queries, dim});
  byte_count bytes = attention_workspace_bytes(dim, dim, 1);
  if (weights) {
    outputs.weights = view<float, 4>::contiguous(job.outputs[1].data(), {1, heads, queries, keys});
    bytes += attention_statistics_bytes(1, heads, queries);
  }
  const workspace memory = reserve(job, bytes);
  job.call = [=] { attention_forward(inputs, options, outputs, memory, one_thread()); };
}

void set_linear(job& job, std::istream& words) {
  extent rows, in_dim, out_dim;
  words >> rows >> in_dim >> out_dim;
  const auto x = view<const float, 2>::contiguous(job.inputs[0].data(), {rows, in_dim});
  const auto weight = view<const float, 2>::contiguous(job.inputs[1].data(), {in_dim, out_dim});
  const auto out = view<float, 2>::contiguous(job.outputs[0].data(), {rows, out_dim});
  const workspace memory = reserve(job, linear_workspace_bytes(in_dim, out_dim, 1));
  job.call = [=] { linear_forward(x, weight, nullptr, out, memory, one_thread()); };
}

void set_eigen(job& job, std::istream& words) {
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  extent rows, in_dim, out_dim;
  words >> rows >> in_dim >> out_dim;
  const Eigen::Map<const matrix> x(job.inputs[0].data(), rows, in_dim);
  const Eigen::Map<const matrix> weight(job.inputs[1].data(), in_dim, out_dim);
  job.call = [=, &job] {
    Eigen::Map<matrix>(job.outputs[0].data(), rows, out_dim).noalias() = x * weight;
  };
}

void set_recurrent(job& job, recurrent_cell cell, std::istream& words) {
  extent length, hidden;
  words >> length >> hidden;
  const recurrent_options options{.cell = cell};
  const recurrent_inputs inputs{
      view<const float, 3>::contiguous(job.inputs[0].data(), {1, length, hidden})};
  const auto weight = [&](int i) {
    return view<const float, 2>::contiguous(job.inputs[i].data(), {hidden, gates_of(cell) * hidden});
  };
  const recurrent_parameters parameters{weight(1), weight(2), job.inputs[3].data(),
                                        job.inputs[4].data()};
  job.state.resize(2 * hidden);
  const auto state = [&](extent at) {
    return view<float, 3>::contiguous(job.state.data() + at, {1, 1, hidden});
  };
  recurrent_outputs outputs{
      view<float, 3>::contiguous(job.outputs[0].data(), {1, length, hidden}), state(0)};
  if (cell == recurrent_cell::lstm) outputs.c = state(hidden);
  const workspace memory =
      reserve(job, recurrent_workspace_bytes({1, length, hidden, hidden}, options, 1));
  job.call = [=] {
    recurrent_forward(inputs, {parameters}, options, outputs, memory, one_thread());
  };
}

}  // namespace

void set_call(job& job, std::istream& words) {
  std::string operation;
  words >> operation;
  if (operation == "attention") set_attention(job, words);
  if (operation == "linear") set_linear(job, words);
  if (operation == "eigen") set_eigen(job, words);
  if (operation == "rnn") set_recurrent(job, recurrent_cell::rnn, words);
  if (operation == "lstm") set_recurrent(job, recurrent_cell::lstm, words);
  if (operation == "gru") set_recurrent(job, recurrent_cell::gru, words);
}
