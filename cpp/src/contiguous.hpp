// The one demand that kernels make on strides.
#pragma once

#include "qkv/view.hpp"

namespace qkv {

// The last axis lies without gaps (or has no second element that could lie apart).
template <typename T, int Rank>
bool rows_are_contiguous(const view<T, Rank>& tensor) {
  return tensor.strides[Rank - 1] == 1 || tensor.shape[Rank - 1] <= 1;
}

}  // namespace qkv
