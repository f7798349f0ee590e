// Runs what build-scripts/count-instructions.mjs counts under callgrind, which sees each case as
// one call of qkv_counted. Prints what compiled it, then the name of each case as it is run.
#include <cstdio>

#include "counts/cases.hpp"

#if defined(__clang__) && defined(__x86_64__)
#define QKV_COMPILER "clang %d on x86_64", __clang_major__
#else
#define QKV_COMPILER "%s", "another compiler or processor"
#endif

extern "C" [[gnu::noinline]] void qkv_counted(const std::function<void()>& call) { call(); }

int main() {
  std::printf(QKV_COMPILER);
  std::puts("");
  for (const auto& [name, call] : qkv::test::counted_cases()) {
    std::puts(name.c_str());
    call();  // what only a first call does is not counted
    qkv_counted(call);
  }
}
