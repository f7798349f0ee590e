// Eigen's view of our views, for small or cold code; hot loops are the kernels'.
#pragma once

#define EIGEN_NO_DEBUG
#include <Eigen/Core>

#include "qkv/view.hpp"

namespace qkv {

template <typename T>
using matrix_map =
    Eigen::Map<std::conditional_t<std::is_const_v<T>,
                                  const Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic,
                                                     Eigen::Dynamic, Eigen::RowMajor>,
                                  Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
               Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

template <typename T>
matrix_map<T> as_array(const view<T, 2>& rows) {
  return {rows.data, rows.shape[0], rows.shape[1], {rows.strides[0], rows.strides[1]}};
}

}  // namespace qkv
