// The plain gradients, which every kernel is held to, against finite differences.
#include "qkv/reference_layers.hpp"

#include "support/gradcheck.hpp"
#include "support/random.hpp"

using namespace qkv;
using namespace qkv::test;

namespace {

std::vector<double> doubles(number_source& numbers, extent count, double scale = 1.0) {
  return to_double(numbers.floats(count, scale));
}

}  // namespace

TEST_CASE("the plain gradients of linear are those of its loss") {
  number_source numbers(1);
  for (const auto& [rows, in_dim, out_dim] :
       {std::array<extent, 3>{1, 1, 1}, {3, 5, 2}, {7, 4, 9}, {2, 1, 6}}) {
    auto x = doubles(numbers, rows * in_dim), weight = doubles(numbers, in_dim * out_dim),
         bias = doubles(numbers, out_dim);
    const auto d_out = doubles(numbers, rows * out_dim);
    const auto made = reference::linear_backward(d_out, x, weight, rows, in_dim, out_dim);
    const auto loss = [&] {
      return weighted_sum(reference::linear(x, weight, bias, rows, in_dim, out_dim), d_out);
    };
    check_gradient(x, made.d_x, loss);
    check_gradient(weight, made.d_weight, loss);
    check_gradient(bias, made.d_bias, loss);
  }
}

TEST_CASE("the plain gradient of softmax is that of its loss") {
  number_source numbers(2);
  for (extent columns : {1, 2, 5, 33}) {
    auto x = doubles(numbers, columns, 3);
    const auto d_out = doubles(numbers, columns);
    const auto d_x = reference::softmax_row_backward(d_out, x);
    if (columns == 1)
      CHECK_EQ(d_x[0], 0);
    else {
      check_gradient(x, d_x, [&] {
        std::vector<double> out = x;
        reference::softmax_row(out.data(), columns);
        return weighted_sum(out, d_out);
      });
    }
  }
}

TEST_CASE("the plain gradients of the norms are those of their losses") {
  number_source numbers(3);
  for (extent columns : {2, 3, 13, 40}) {
    for (double epsilon : {1e-5, 0.1}) {
      for (bool scaled : {true, false}) {
        auto x = doubles(numbers, 3 * columns), beta = doubles(numbers, columns);
        auto gamma = scaled ? doubles(numbers, columns) : std::vector<double>{};
        const auto d_out = doubles(numbers, 3 * columns);
        auto made = reference::layer_norm_backward(d_out, x, gamma, epsilon, columns);
        const auto layer_norm_loss = [&] {
          return weighted_sum(reference::layer_norm(x, gamma, beta, epsilon, columns), d_out);
        };
        // A row of two is 1 and -1 but for epsilon: nothing but rounding is left of its gradient.
        if (columns > 2) check_gradient(x, made.d_x, layer_norm_loss);
        check_gradient(beta, made.d_beta, layer_norm_loss);
        if (scaled) check_gradient(gamma, made.d_gamma, layer_norm_loss);
        made = reference::rms_norm_backward(d_out, x, gamma, epsilon, columns);
        const auto rms_norm_loss = [&] {
          return weighted_sum(reference::rms_norm(x, gamma, epsilon, columns), d_out);
        };
        check_gradient(x, made.d_x, rms_norm_loss);
        if (scaled) check_gradient(gamma, made.d_gamma, rms_norm_loss);
      }
    }
  }
}

TEST_CASE("the plain slopes of gelu and silu are those of the functions") {
  const auto check = [](double (*function)(double), double (*slope)(double)) {
    std::vector<double> x, slopes;
    for (double at = -6; at < 6; at += 0.173) {
      x.push_back(at);
      slopes.push_back(slope(at));
    }
    check_gradient(x, slopes, [&] {
      double sum = 0;
      for (double value : x) sum += function(value);
      return sum;
    });
  };
  check(reference::gelu<double>, reference::gelu_slope<double>);
  check(reference::gelu_tanh<double>, reference::gelu_tanh_slope<double>);
  check(reference::silu<double>, reference::silu_slope<double>);
}

TEST_CASE("the plain gradient of rotary is that of its loss") {
  number_source numbers(4);
  for (bool neighbours : {false, true}) {
    for (extent pairs : {1, 3, 8}) {
      auto x = doubles(numbers, 2 * pairs);
      const auto angles = doubles(numbers, pairs, 4), d_out = doubles(numbers, 2 * pairs);
      auto d_x = d_out;
      reference::rotate_row_backward(d_x.data(), angles, neighbours);
      check_gradient(x, d_x, [&] {
        auto out = x;
        reference::rotate_row(out.data(), angles, neighbours);
        return weighted_sum(out, d_out);
      });
    }
  }
}

TEST_CASE("the plain gradient of embedding is that of its loss") {
  number_source numbers(5);
  const std::vector<std::int32_t> indices{2, 0, 2, 2, 4};
  auto table = doubles(numbers, 5 * 3);
  const auto d_out = doubles(numbers, 5 * 3);
  check_gradient(table, reference::embedding_backward(d_out, indices, 5, 3), [&] {
    std::vector<double> out;
    for (std::int32_t row : indices) out.insert(out.end(), &table[3 * row], &table[3 * row] + 3);
    return weighted_sum(out, d_out);
  });
}

TEST_CASE("the plain gradient of cross entropy is that of its loss") {
  number_source numbers(6);
  for (extent classes : {2, 3, 17}) {
    auto logits = doubles(numbers, 4 * classes, 3);
    const std::vector<std::int32_t> targets{0, static_cast<std::int32_t>(classes - 1), 1, 1};
    check_gradient(logits, reference::cross_entropy(logits, targets, classes).d_logits,
                   [&] { return reference::cross_entropy(logits, targets, classes).loss; });
  }
}
