// The gradient of the normalization of one contiguous row.
#pragma once

#include "kernels/norm_row.hpp"

namespace qkv::kernels {

// What a row adds to the gradients of gamma and beta; null where one is not wanted.
struct column_gradients {
  float* gamma;
  float* beta;
};

// out = scaled * gamma + beta, scaled = (x - mean) * factor: with g = d_out * gamma,
//   d_x = (g - mean of g - scaled * mean of (g * scaled)) * factor
// where the mean of g is what went through x's mean, and the other what went through the factor.
class norm_gradient {
 public:
  // Root mean square normalization has no mean.
  norm_gradient(const normalization& row, bool has_mean, const float* d_out, const float* x,
                extent columns)
      : row_(row), has_mean_(has_mean), d_out_(d_out), x_(x), columns_(columns) {}

  // Writes d_x, which may be d_out or x, and adds to the columns' gradients.
  void write(float* d_x, column_gradients to) const {
    const means found = means_of_row();
    for (extent j = 0; j < columns_; j += simd::lanes) {
      const extent count = columns_ - j;
      const simd::batch value = scaled(j, count), d_out = load_row(d_out_ + j, count);
      if (to.gamma != nullptr) {
        store_row(to.gamma + j, count, simd::madd(d_out, value, load_row(to.gamma + j, count)));
      }
      if (to.beta != nullptr) {
        store_row(to.beta + j, count, load_row(to.beta + j, count) + d_out);
      }
      simd::batch rest = gradient(j, count) - value * simd::broadcast(found.product);
      if (has_mean_) rest = rest - simd::broadcast(found.gradient);
      store_row(d_x + j, count, rest * simd::broadcast(row_.factor));
    }
  }

 private:
  struct means {
    float gradient;  // of g
    float product;   // of g * scaled
  };

  simd::batch scaled(extent j, extent count) const {
    const simd::batch difference =
        load_row(x_ + j, count, row_.center) - simd::broadcast(row_.center);
    return (difference - simd::broadcast(row_.rest)) * simd::broadcast(row_.factor);
  }

  simd::batch gradient(extent j, extent count) const {
    const simd::batch d_out = load_row(d_out_ + j, count);
    return row_.gamma == nullptr ? d_out : d_out * load_row(row_.gamma + j, count);
  }

  means means_of_row() const {
    double gradients = 0, products = 0;
    for (extent block = 0; block < columns_; block += row_sum_block * simd::lanes) {
      const extent end = std::min(columns_, block + row_sum_block * simd::lanes);
      simd::batch gradient_sum = simd::zero(), product_sum = simd::zero();
      for (extent j = block; j < end; j += simd::lanes) {
        const simd::batch value = gradient(j, end - j);
        gradient_sum = gradient_sum + value;
        product_sum = simd::madd(value, scaled(j, end - j), product_sum);
      }
      gradients += simd::sum_lanes(gradient_sum);
      products += simd::sum_lanes(product_sum);
    }
    const double count = static_cast<double>(columns_);
    return {static_cast<float>(gradients / count), static_cast<float>(products / count)};
  }

  const normalization& row_;
  bool has_mean_;
  const float* d_out_;
  const float* x_;
  extent columns_;
};

}  // namespace qkv::kernels
