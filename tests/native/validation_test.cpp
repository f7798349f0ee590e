#include <string>

#include "support/attention_case.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

struct attention_call {
  attention_case one{{2, 4, 2, 3, 5, 6, 7}, 1};
  std::vector<float> out = std::vector<float>(2 * 4 * 3 * 7, 42.0f);
  attention_inputs inputs = one.inputs();
  attention_options options = one.options();
  attention_outputs outputs;
  std::size_t bytes = attention_workspace_bytes(6, 7, 1);

  attention_call() { outputs.out = view<float, 4>::contiguous(out.data(), {2, 4, 3, 7}); }

  status run() {
    thread_pool pool(1);
    scratch memory(bytes);
    return attention_forward(inputs, options, outputs, memory, pool);
  }

  void check_refused(status expected) {
    CHECK_EQ(run(), expected);
    CHECK_EQ(out, std::vector<float>(out.size(), 42.0f));
  }
};

}  // namespace

TEST_CASE("attention refuses what does not fit and writes nothing") {
  REQUIRE_EQ(attention_call().run(), status::ok);
  const auto refused = [](status expected, auto change) {
    attention_call call;
    change(call);
    call.check_refused(expected);
  };
  const status mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refused(mismatch, [](auto& call) { call.inputs.key.shape[0] = 1; });
  refused(mismatch, [](auto& call) { call.inputs.key.shape[1] = 3; });
  refused(mismatch, [](auto& call) { call.inputs.key.shape[1] = 0; });
  refused(mismatch, [](auto& call) { call.inputs.key.shape[3] = 5; });
  refused(mismatch, [](auto& call) { call.inputs.value.shape[2] = 4; });
  refused(mismatch, [](auto& call) { call.inputs.value.shape[1] = 4; });
  refused(mismatch, [](auto& call) { call.outputs.out.shape[3] = 6; });
  refused(mismatch, [](auto& call) { call.outputs.weights = call.outputs.out; });
  refused(mismatch, [](auto& call) {
    static const std::uint8_t byte = 1;
    call.options.mask.allowed = {&byte, {2, 4, 3, 6}, {}};
  });
  refused(invalid, [](auto& call) { call.options.scale = quiet_nan; });
  refused(invalid, [](auto& call) { call.options.scale = std::numeric_limits<float>::infinity(); });
  refused(invalid, [](auto& call) { call.inputs.query.strides[3] = 2; });
  refused(status::out_of_memory, [](auto& call) { call.bytes /= 2; });
  refused(status::out_of_memory, [](auto& call) { call.bytes = 0; });
}

TEST_CASE("attention_backward refuses what does not fit and writes nothing") {
  const attention_case one({2, 4, 2, 3, 5, 6, 7}, 1);
  struct call {
    attention_inputs inputs;
    attention_options options;
    view<const float, 4> d_out;
    attention_gradients to;
    byte_count bytes;
  };
  const auto refused = [&](status expected, auto change) {
    std::vector<float> data(1000, 42.0f);
    const auto whole = [&](auto... shape) {
      return view<float, 4>::contiguous(data.data(), {shape...});
    };
    call made{one.inputs(),
              one.options(),
              whole(2, 4, 3, 7),
              {whole(2, 4, 3, 6), whole(2, 2, 5, 6), whole(2, 2, 5, 7), {}},
              attention_backward_workspace_bytes(one.inputs(), 1)};
    change(made);
    thread_pool pool(1);
    scratch memory(made.bytes);
    CHECK_EQ(attention_backward(made.d_out, made.inputs, made.options, made.to, memory, pool),
             expected);
    if (expected != status::ok) CHECK_EQ(data, std::vector<float>(1000, 42.0f));
  };
  const status mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  static float numbers[480] = {};
  refused(status::ok, [](call&) {});
  refused(mismatch, [](call& of) { of.inputs.key.shape[1] = 3; });
  refused(mismatch, [](call& of) { of.d_out.shape[3] = 6; });
  refused(mismatch, [](call& of) { of.to.d_query.shape[2] = 4; });
  refused(mismatch, [](call& of) { of.to.d_key.shape[1] = 4; });
  refused(mismatch, [](call& of) { of.to.d_value.shape[3] = 6; });
  refused(mismatch, [](call& of) {
    of.options.bias = view<const float, 4>::contiguous(numbers, {2, 4, 3, 5});
    of.to.d_bias = view<float, 4>::contiguous(numbers, {2, 4, 3, 4});
  });
  refused(invalid, [](call& of) { of.options.scale = quiet_nan; });
  refused(invalid, [](call& of) { of.d_out.strides[3] = 2; });
  refused(invalid, [](call& of) { of.to.d_key.strides[3] = 2; });
  refused(invalid, [](call& of) {
    of.to.d_bias = view<float, 4>::contiguous(numbers, {2, 4, 3, 5});
  });
  refused(invalid, [](call& of) { of.to.d_sinks = numbers; });
  refused(status::out_of_memory, [](call& of) { of.bytes /= 2; });
  refused(status::out_of_memory, [](call& of) { of.bytes = 0; });
}

TEST_CASE("linear refuses what does not fit") {
  std::vector<float> data(100, 1.0f);
  thread_pool pool(1);
  scratch memory(1 << 20);
  const auto matrix = [&](extent rows, extent columns) {
    return view<float, 2>::contiguous(data.data(), {rows, columns});
  };
  CHECK_EQ(linear_forward(matrix(2, 3), matrix(4, 2), nullptr, matrix(2, 2), memory, pool),
           status::shape_mismatch);
  CHECK_EQ(linear_forward(matrix(2, 3), matrix(3, 2), nullptr, matrix(2, 3), memory, pool),
           status::shape_mismatch);
  CHECK_EQ(linear_forward(matrix(2, 3), matrix(3, 2), nullptr, matrix(2, 2), {}, pool),
           status::out_of_memory);
}

TEST_CASE("every status has a code of its own") {
  CHECK_EQ(std::string(status_code(status::ok)), "OK");
  CHECK_EQ(std::string(status_code(status::out_of_memory)), "OUT_OF_MEMORY");
}
