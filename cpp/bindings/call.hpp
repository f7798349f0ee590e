// How JavaScript hands over the many arguments of an operation: as one struct in the heap. An
// Embind value_object would cost a closure call and an allocation for each field, which is more
// than a small attention takes. The fields are listed once, in a macro: struct and layout are both
// made from it, and JavaScript reads the layout, so that neither side repeats the other.
#pragma once

#include <cstdint>

namespace qkv::bindings {

// A place in the heap with the strides, in elements, of up to four axes. At 0: not given.
struct heap_tensor {
  std::int32_t data;
  std::int32_t strides[4];
};

}  // namespace qkv::bindings

// A field of 4 bytes: an address, a length, a flag. One that is a float. And a tensor.
#define QKV_CALL_INT(name) std::int32_t name;
#define QKV_CALL_FLOAT(name) float name;
#define QKV_CALL_TENSOR(name) heap_tensor name;

// "name:i,name:f,name:t,..." in the order of the struct.
#define QKV_LAYOUT_INT(name) #name ":i,"
#define QKV_LAYOUT_FLOAT(name) #name ":f,"
#define QKV_LAYOUT_TENSOR(name) #name ":t,"

namespace qkv::bindings {

template <typename Call>
const Call& call_at(std::uintptr_t address) {
  return *reinterpret_cast<const Call*>(address);
}

inline std::uintptr_t text_address(const char* text) {
  return reinterpret_cast<std::uintptr_t>(text);
}

}  // namespace qkv::bindings
