// From the addresses that JavaScript holds to views.
#pragma once

#include <array>
#include <cstdint>

#include "call.hpp"
#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv::bindings {

// 0 is "not given".
using address = std::int32_t;

template <typename T>
T* heap_pointer(address data) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(data));
}

template <typename T, int Rank>
view<T, Rank> heap_view(address data, std::array<extent, Rank> shape) {
  return view<T, Rank>::contiguous(heap_pointer<T>(data), shape);
}

template <typename T>
view<T, 4> heap_view(const heap_tensor& tensor, std::array<extent, 4> shape) {
  if (tensor.data == 0) return {};
  const auto& strides = tensor.strides;
  return {heap_pointer<T>(tensor.data), shape, {strides[0], strides[1], strides[2], strides[3]}};
}

inline workspace heap_workspace(address data, extent bytes) {
  return {heap_pointer<void>(data), static_cast<byte_count>(bytes)};
}

}  // namespace qkv::bindings
