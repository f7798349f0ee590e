// From the addresses that JavaScript holds to views.
#pragma once

#include <array>
#include <cstdint>

#include "qkv/view.hpp"
#include "qkv/workspace.hpp"

namespace qkv::bindings {

// 0 is "not given".
using address = std::uintptr_t;

template <typename T, int Rank>
view<T, Rank> heap_view(address data, std::array<extent, Rank> shape) {
  return view<T, Rank>::contiguous(reinterpret_cast<T*>(data), shape);
}

inline workspace heap_workspace(address data, std::size_t bytes) {
  return {reinterpret_cast<void*>(data), bytes};
}

}  // namespace qkv::bindings
