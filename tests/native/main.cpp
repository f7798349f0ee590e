// A wasm program believes that every output is a terminal.
#if defined(__EMSCRIPTEN__)
#define DOCTEST_CONFIG_COLORS_NONE
#endif
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support/doctest.hpp"
