#include "qkv/sequence_model.hpp"

#include <emscripten/bind.h>

#include "adam_settings.hpp"
#include "call.hpp"
#include "heap.hpp"
#include "runtime.hpp"

namespace qkv::bindings {

namespace {

// Enumerations are numbered as in qkv/sequence_model.hpp. The model and its block of parameters are
// for every task; the rest:
//
//   start      recurrent_start, forget_bias, chrono_length, seed_low and seed_high (32 bits each)
//   forward    the inputs (tokens to context_lengths: int32, as in sequence_inputs), output
//   weights    the inputs, output
//   evaluate   the inputs, targets (int32), result
//   gradients  as evaluate, gradients, input_norms
//   train      as evaluate, gradients, mean, square, settings, check, fault
//
// parameters, gradients, mean, square: blocks of sequenceParameterCount floats. output,
// input_norms: floats of the shapes of sequence_forward(), sequence_weights() and
// sequence_gradients. result: two doubles, loss and accuracy. settings: adam_settings. fault: what
// sequence_fault holds, as two integers and a float. What is optional is 0 where not given.
// clang-format off
#define QKV_SEQUENCE_CALL(integer, number)                                                     \
  integer(task) integer(mixer) integer(positions) integer(ties) integer(readout)               \
  integer(causal) integer(residual) integer(vocab) integer(embed_dim) integer(classes)         \
  integer(layers) integer(num_heads) integer(max_length)                                       \
  integer(recurrent_start) number(forget_bias) integer(chrono_length)                          \
  integer(seed_low) integer(seed_high) integer(parameters)                                     \
  integer(tokens) integer(batch) integer(length) integer(lengths) integer(read_at)             \
  integer(context) integer(context_length) integer(context_lengths)                            \
  integer(targets) integer(output) integer(result) integer(gradients) integer(input_norms)     \
  integer(mean) integer(square) integer(settings) integer(check) integer(fault)                \
  integer(workspace) integer(workspace_bytes)
// clang-format on

struct sequence_call {
  QKV_SEQUENCE_CALL(QKV_CALL_INT, QKV_CALL_FLOAT)

  sequence_task wanted() const { return static_cast<sequence_task>(task); }

  sequence_model model() const {
    return {.mixer = static_cast<sequence_mixer>(mixer),
            .positions = static_cast<sequence_positions>(positions),
            .ties = static_cast<sequence_ties>(ties),
            .readout = static_cast<sequence_readout>(readout),
            .causal = causal != 0,
            .residual = residual != 0,
            .vocab = vocab,
            .embed_dim = embed_dim,
            .classes = classes,
            .layers = layers,
            .num_heads = num_heads,
            .max_length = max_length};
  }

  sequence_starts starts() const {
    const auto seed = static_cast<std::uint64_t>(static_cast<std::uint32_t>(seed_high)) << 32;
    return {seed | static_cast<std::uint32_t>(seed_low),
            static_cast<qkv::recurrent_start>(recurrent_start), forget_bias, chrono_length};
  }

  sequence_inputs inputs() const {
    return {heap_pointer<const std::int32_t>(tokens),
            batch,
            length,
            heap_pointer<const std::int32_t>(lengths),
            heap_pointer<const std::int32_t>(read_at),
            heap_pointer<const std::int32_t>(context),
            context_length,
            heap_pointer<const std::int32_t>(context_lengths)};
  }

  qkv::workspace memory() const { return heap_workspace(workspace, workspace_bytes); }
};

// As qkv::sequence_result and qkv::sequence_fault are handed over.
struct told_result {
  double loss, accuracy;
};
struct told_fault {
  std::int32_t what, element;
  float value;
};

status loss_of(const sequence_call& call) {
  sequence_result result;
  const sequence_gradients gradients{heap_pointer<float>(call.gradients),
                                     heap_pointer<float>(call.input_norms)};
  const status made =
      sequence_loss(call.model(), heap_pointer<const float>(call.parameters), call.inputs(),
                    heap_pointer<const std::int32_t>(call.targets), result,
                    call.wanted() == sequence_task::gradients ? gradients : sequence_gradients{},
                    call.memory(), pool());
  *heap_pointer<told_result>(call.result) = {result.loss, result.accuracy};
  return made;
}

status train(const sequence_call& call) {
  auto& settings = *heap_pointer<adam_settings>(call.settings);
  sequence_training training{heap_pointer<float>(call.gradients),
                             settings.options,
                             {heap_pointer<float>(call.mean), heap_pointer<float>(call.square),
                              settings.beta1_power, settings.beta2_power},
                             call.check != 0};
  sequence_result result;
  sequence_fault fault;
  const status made =
      sequence_train_step(call.model(), heap_pointer<float>(call.parameters), call.inputs(),
                          heap_pointer<const std::int32_t>(call.targets), training, result, fault,
                          call.memory(), pool());
  settings.beta1_power = training.state.beta1_power;
  settings.beta2_power = training.state.beta2_power;
  *heap_pointer<told_result>(call.result) = {result.loss, result.accuracy};
  *heap_pointer<told_fault>(call.fault) = {static_cast<std::int32_t>(fault.what),
                                           static_cast<std::int32_t>(fault.element), fault.value};
  return made;
}

int sequence(std::uintptr_t at) {
  const auto& call = call_at<sequence_call>(at);
  const auto* parameters = heap_pointer<const float>(call.parameters);
  auto* output = heap_pointer<float>(call.output);
  const auto run = [&] {
    switch (call.wanted()) {
      case sequence_task::start:
        return sequence_start(call.model(), call.starts(), heap_pointer<float>(call.parameters),
                              call.memory());
      case sequence_task::forward:
        return sequence_forward(call.model(), parameters, call.inputs(), output, call.memory(),
                                pool());
      case sequence_task::weights:
        return sequence_weights(call.model(), parameters, call.inputs(), output, call.memory(),
                                pool());
      case sequence_task::train:
        return train(call);
      default:
        return loss_of(call);
    }
  };
  return static_cast<int>(run());
}

std::uintptr_t sequence_layout() {
  return text_address(QKV_SEQUENCE_CALL(QKV_LAYOUT_INT, QKV_LAYOUT_FLOAT));
}

// As doubles, which hold more than 32 bits and are numbers in JavaScript.
double sequence_bytes(std::uintptr_t at) {
  const auto& call = call_at<sequence_call>(at);
  return static_cast<double>(sequence_workspace_bytes(
      call.model(), {call.batch, call.length, call.context_length}, call.wanted(), pool().size()));
}

double parameter_count(std::uintptr_t at) {
  return static_cast<double>(sequence_parameter_count(call_at<sequence_call>(at).model()));
}

std::uintptr_t parameter(std::uintptr_t at, extent index, std::uintptr_t out) {
  sequence_parameter found;
  if (!sequence_parameter_at(call_at<sequence_call>(at).model(), index, found)) return 0;
  auto* told = reinterpret_cast<std::int32_t*>(out);
  for (const extent number : {found.layer, found.rows, found.columns, found.offset}) {
    *told++ = static_cast<std::int32_t>(number);
  }
  return text_address(sequence_parameter_name(found.kind));
}

}  // namespace

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(sequence_model) {
  using namespace qkv::bindings;
  emscripten::function("sequence", &sequence);
  emscripten::function("sequenceLayout", &sequence_layout);
  emscripten::function("sequenceWorkspaceBytes", &sequence_bytes);
  emscripten::function("sequenceParameterCount", &parameter_count);
  emscripten::function("sequenceParameter", &parameter);
}
