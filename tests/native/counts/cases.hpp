// The operations whose instructions are counted, each at one small size.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace qkv::test {

struct counted_case {
  std::string name;
  std::function<void()> call;  // owns its inputs and outputs
};

// A new case is counted as soon as it is in this list.
std::vector<counted_case> counted_cases();

}  // namespace qkv::test
