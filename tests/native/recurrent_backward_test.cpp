#include "qkv/recurrent_backward.hpp"

#include <cmath>

#include "support/recurrent_gradient_case.hpp"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("gradients through time are right with every option, over batches and sizes") {
  for (const recurrent_options& options : every_recurrent_option()) {
    for (extent hidden : {1, 4, 9, 33}) {
      CAPTURE(options);
      CAPTURE(hidden);
      // Of all batches together: the few numbers of the smallest are often right by luck.
      recurrent_gradient_errors errors;
      for (extent batch : {1, 3, 9}) {
        for (std::uint64_t seed = 1; seed <= (hidden == 1 ? 9 : 3); ++seed) {
          recurrent_case one({batch, 7, 5, hidden}, options, seed);
          errors.add(one, some_loss(one));
          one.set_ragged();
          errors.add(one, some_loss(one));
        }
      }
      errors.check();
    }
  }
}

TEST_CASE("gradients through time are right for whole panels and sums of several blocks") {
  for (const recurrent_options& options : every_recurrent_option()) {
    if (options.direction != recurrent_direction::forward) continue;
    for (extent hidden : {32, 64, 70, 300}) {
      for (extent length : {1, 2, 3, 70}) {
        if (hidden * length > 5000) continue;
        CAPTURE(options);
        CAPTURE(hidden);
        CAPTURE(length);
        recurrent_gradient_errors errors;
        const recurrent_case one({2, length, 80, hidden}, options, 2);
        errors.add(one, some_loss(one));
        errors.check();
      }
    }
  }
}

TEST_CASE("gradients through time are right for many steps and several groups of sequences") {
  for (const recurrent_options& options : every_recurrent_option()) {
    if (options.direction != recurrent_direction::both) continue;
    CAPTURE(options);
    recurrent_gradient_errors errors;
    recurrent_case one({17, 40, 3, 6}, options, 8);
    one.set_ragged();
    errors.add(one, some_loss(one));
    errors.check();
  }
}

TEST_CASE("gradients through time start from zeros and without biases where none are given") {
  for (const recurrent_options& options : every_recurrent_option()) {
    for (int missing = 0; missing < 8; ++missing) {
      CAPTURE(options);
      CAPTURE(missing);
      recurrent_gradient_errors errors;
      for (std::uint64_t seed = 3; seed < 6; ++seed) {
        recurrent_case one({3, 7, 5, 10}, options, seed);
        one.h0.clear();
        one.c0.clear();
        for (auto& weights : one.weights) {
          weights.bx.clear();
          if (missing & 1) weights.bh.clear();
          weights.peephole.clear();
        }
        auto loss = some_loss(one);
        if (missing & 1) loss.outputs.clear();
        if (missing & 2) loss.h.clear();
        if (missing & 4) loss.c.clear();
        errors.add(one, loss);
      }
      errors.check();
    }
  }
}

TEST_CASE("gradients through time are right where x has no numbers") {
  for (const recurrent_options& options : every_recurrent_option()) {
    recurrent_gradient_errors errors;
    for (std::uint64_t seed = 10; seed < 13; ++seed) {
      const recurrent_case one({2, 3, 0, 4}, options, seed);
      errors.add(one, some_loss(one));
    }
    errors.check();
  }
}

TEST_CASE("without steps gradients pass to the first state, and weights have none") {
  for (recurrent_cell cell : recurrent_cells) {
    recurrent_case none({2, 4, 3, 5}, {.cell = cell}, 6);
    none.lengths = {0, 0};
    for (const recurrent_case& one : {none, recurrent_case({2, 0, 3, 5}, {.cell = cell}, 6)}) {
      const auto loss = some_loss(one);
      const auto made = run_backward(one, loss);
      CHECK_EQ(made.by.h0, loss.h);
      CHECK_EQ(made.by.c0, loss.c);
      CHECK_EQ(made.by.x, std::vector<float>(one.x.size(), 0.0f));
      const auto& weights = made.by.weights[0];
      for (const auto* of : {&weights.wx, &weights.wh, &weights.bx, &weights.bh}) {
        CHECK_EQ(*of, std::vector<float>(of->size(), 0.0f));
      }
    }
  }
}

TEST_CASE("gradients that vanish over time become zeros, and no denormal numbers") {
  for (recurrent_cell cell : recurrent_cells) {
    CAPTURE(static_cast<int>(cell));
    const recurrent_case one({2, 500, 3, 8}, {.cell = cell}, 8);
    const auto made = run_backward(one, {{}, some_loss(one).h, {}});
    const auto& d_x = made.by.x;
    const auto is_denormal = [](float d) { return d != 0 && !std::isnormal(d); };
    CHECK_EQ(std::count_if(d_x.begin(), d_x.end(), is_denormal), 0);
    CHECK_EQ(std::count(d_x.begin(), d_x.begin() + 3, 0.0f), 3);
    CHECK_EQ(std::count(d_x.end() - 3, d_x.end(), 0.0f), 0);
  }
}

TEST_CASE("recurrent_backward refuses what does not fit and writes nothing") {
  std::vector<float> data(200, 1.0f), out(300, 42.0f);
  thread_pool pool(1);
  const auto read = [&](extent a, extent b, extent c) {
    return view<const float, 3>::contiguous(data.data(), {a, b, c});
  };
  const auto write = [&](extent a, extent b, extent c) {
    return view<float, 3>::contiguous(out.data(), {a, b, c});
  };
  const auto matrix = [&](extent rows, extent columns) {
    return view<const float, 2>::contiguous(data.data(), {rows, columns});
  };
  const auto d_matrix = [&](extent rows, extent columns) {
    return view<float, 2>::contiguous(out.data() + 100, {rows, columns});
  };
  struct call {
    recurrent_inputs inputs;
    std::array<recurrent_parameters, 2> parameters;
    recurrent_options options;
    recurrent_output_gradients d_outputs;
    recurrent_gradients gradients;
    float* trace;
    std::size_t bytes;
  };
  const auto refused = [&](status expected, auto change) {
    const std::int32_t lengths[] = {4, 5};
    std::vector<float> trace(
        recurrent_trace_bytes({2, 5, 3, 4}, {.cell = recurrent_cell::lstm}) / sizeof(float), 1.0f);
    call one{
        {read(2, 5, 3), read(1, 2, 4), read(1, 2, 4), lengths},
        {{{matrix(3, 16), matrix(4, 16), nullptr, nullptr, data.data()}, {}}},
        {.cell = recurrent_cell::lstm},
        {read(2, 5, 4), read(1, 2, 4), read(1, 2, 4)},
        {write(2, 5, 3),
         write(1, 2, 4),
         write(1, 2, 4),
         {{{d_matrix(3, 16), d_matrix(4, 16), out.data() + 180, out.data() + 200, out.data() + 220},
           {}}}},
        trace.data(),
        0};
    one.bytes = recurrent_backward_workspace_bytes({2, 5, 3, 4}, one.options, 1);
    change(one);
    scratch memory(one.bytes);
    CHECK_EQ(recurrent_backward(one.inputs, one.parameters, one.options, one.trace, one.d_outputs,
                                one.gradients, memory, pool),
             expected);
    if (expected == status::ok) return;
    CHECK_EQ(out, std::vector<float>(300, 42.0f));
    CHECK_EQ(trace, std::vector<float>(trace.size(), 1.0f));
  };
  const status mismatch = status::shape_mismatch, invalid = status::invalid_argument;
  refused(mismatch, [&](call& one) { one.parameters[0].wx = matrix(4, 16); });
  refused(mismatch, [](call& one) { one.inputs.h0.shape[0] = 2; });
  refused(mismatch, [&](call& one) { one.d_outputs.d_outputs = read(2, 5, 3); });
  refused(mismatch, [&](call& one) { one.d_outputs.d_h = read(1, 1, 4); });
  refused(mismatch, [&](call& one) { one.d_outputs.d_c = read(1, 2, 3); });
  refused(mismatch, [&](call& one) { one.gradients.d_x = write(2, 4, 3); });
  refused(mismatch, [&](call& one) { one.gradients.d_h0 = write(2, 2, 4); });
  refused(mismatch, [&](call& one) { one.gradients.d_c0 = write(1, 2, 5); });
  refused(mismatch, [&](call& one) { one.gradients.d_parameters[0].d_wx = d_matrix(3, 12); });
  refused(mismatch, [&](call& one) { one.gradients.d_parameters[0].d_wh = d_matrix(3, 16); });
  refused(invalid, [](call& one) { one.d_outputs.d_outputs.strides[2] = 2; });
  refused(invalid, [](call& one) { one.gradients.d_x.strides[2] = 2; });
  refused(invalid, [](call& one) { one.gradients.d_parameters[0].d_wh.strides[1] = 2; });
  refused(invalid, [](call& one) { one.parameters[0].peephole = nullptr; });
  refused(invalid, [](call& one) { one.trace = nullptr; });
  for (std::int32_t wrong : {-1, 6}) {
    const std::int32_t lengths[] = {5, wrong};
    refused(invalid, [&](call& one) { one.inputs.lengths = lengths; });
  }
  const auto as_rnn = [&](call& one) {
    one.options.cell = recurrent_cell::rnn;
    one.parameters[0] = {matrix(3, 4), matrix(4, 4)};
    one.gradients.d_parameters[0] = {d_matrix(3, 4), d_matrix(4, 4)};
    one.inputs.c0 = {};
    one.d_outputs.d_c = {};
    one.gradients.d_c0 = {};
  };
  refused(invalid, [&](call& one) { as_rnn(one), one.d_outputs.d_c = read(1, 2, 4); });
  refused(invalid, [&](call& one) { as_rnn(one), one.gradients.d_c0 = write(1, 2, 4); });
  for (int parts = 0; parts < 8; ++parts) {
    refused(status::out_of_memory, [&](call& one) { one.bytes = one.bytes * parts / 8; });
  }
  refused(status::ok, as_rnn);
  refused(status::ok, [](call&) {});
}
