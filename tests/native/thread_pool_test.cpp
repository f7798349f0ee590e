#include "qkv/thread_pool.hpp"

#include <atomic>
#include <vector>

#include "support/doctest.hpp"

using namespace qkv;

TEST_CASE("every task runs once, by a worker of the pool, call after call") {
  for (int threads : {1, 2, 5}) {
    thread_pool pool(threads);
    CHECK_GE(pool.size(), 1);
    CHECK_LE(pool.size(), threads);
    for (extent tasks : {0, 1, 2, 3, 100, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      std::atomic<bool> known_worker = true;
      pool.run(tasks, [&](extent task, int worker) {
        ++runs[task];
        if (worker < 0 || worker >= pool.size()) known_worker = false;
      });
      for (const auto& count : runs) CHECK_EQ(count, 1);
      CHECK(known_worker);
    }
  }
}

TEST_CASE("no two tasks share a worker at the same time") {
  thread_pool pool(4);
  std::vector<std::atomic<int>> busy(pool.size());
  std::atomic<bool> shared = false;
  for (int repeat = 0; repeat < 200; ++repeat) {
    pool.run(16, [&](extent, int worker) {
      if (++busy[worker] != 1) shared = true;
      --busy[worker];
    });
  }
  CHECK_FALSE(shared);
}
