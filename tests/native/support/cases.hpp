// The sizes at which kernels go wrong: one, below, at and above a tile, and nothing round.
#pragma once

#include "qkv/view.hpp"

namespace qkv::test {

inline constexpr extent lengths[] = {1, 2, 3, 5, 16, 17, 63, 64, 65, 129, 130, 256, 257, 515};
inline constexpr extent dims[] = {1, 3, 4, 5, 20, 64, 65, 80, 128};

}  // namespace qkv::test
