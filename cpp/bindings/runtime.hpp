// What every call into the module shares.
#pragma once

#include "qkv/thread_pool.hpp"

namespace qkv::bindings {

// One thread until startThreads() was called.
thread_pool& pool();

}  // namespace qkv::bindings
