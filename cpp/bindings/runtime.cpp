#include "runtime.hpp"

#include <emscripten/bind.h>

#include <memory>

#include "qkv/status.hpp"

namespace qkv::bindings {

namespace {

std::unique_ptr<thread_pool>& shared_pool() {
  static std::unique_ptr<thread_pool> pool = std::make_unique<thread_pool>(1);
  return pool;
}

// Returns how many there are, the caller included.
int start_threads(int threads) {
  shared_pool() = std::make_unique<thread_pool>(threads);
  return shared_pool()->size();
}

}  // namespace

thread_pool& pool() { return *shared_pool(); }

}  // namespace qkv::bindings

EMSCRIPTEN_BINDINGS(runtime) {
  using namespace qkv;
  emscripten::function("startThreads", &bindings::start_threads);
#define QKV_STATUS_CONSTANT(name, code) emscripten::constant(code, static_cast<int>(status::name));
  QKV_STATUS_LIST(QKV_STATUS_CONSTANT)
#undef QKV_STATUS_CONSTANT
}
