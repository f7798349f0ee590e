// Non-owning strided views: how every operation takes its inputs and outputs.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace qkv {

// The type of lengths, strides and positions along an axis.
using extent = std::ptrdiff_t;

// `Rank` axes over memory that somebody else owns. Strides count elements, not bytes; a stride of 0
// repeats the same element along an axis, which is how a broadcast costs no copy.
template <typename T, int Rank>
struct view {
  T* data = nullptr;
  std::array<extent, Rank> shape{};
  std::array<extent, Rank> strides{};

  // Row-major: the last axis is contiguous.
  static view contiguous(T* data, std::array<extent, Rank> shape) {
    view result{data, shape, {}};
    extent stride = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      result.strides[axis] = stride;
      stride *= shape[axis];
    }
    return result;
  }

  // A view of nothing stands for an output that is not wanted or an input that is not given.
  explicit operator bool() const { return data != nullptr; }

  template <typename... Index>
    requires(sizeof...(Index) == Rank)
  T& operator()(Index... indices) const {
    return data[offset(indices...)];
  }

  // The address of the sub-array at the given leading indices.
  template <typename... Index>
    requires(sizeof...(Index) <= Rank)
  T* at(Index... indices) const {
    return data + offset(indices...);
  }

  operator view<const T, Rank>() const
    requires(!std::is_const_v<T>)
  {
    return {data, shape, strides};
  }

 private:
  template <typename... Index>
  extent offset(Index... indices) const {
    extent sum = 0;
    int axis = 0;
    ((sum += static_cast<extent>(indices) * strides[axis++]), ...);
    return sum;
  }
};

}  // namespace qkv
