#include "qkv/thread_pool.hpp"

#include <algorithm>
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

// New pools each time: a worker's first sleeps run in an engine's first tier.
TEST_CASE("no two tasks share a worker at the same time") {
  std::atomic<bool> shared = false;
  for (int repeat = 0; repeat < 40; ++repeat) {
    thread_pool pool(4);
    std::vector<std::atomic<int>> busy(pool.size());
    for (int run = 0; run < 10; ++run) {
      pool.run(16, [&](extent, int worker) {
        if (++busy[worker] != 1) shared = true;
        volatile int some_time = 0;
        for (int i = 0; i < 5000; ++i) some_time = some_time + i;
        --busy[worker];
      });
    }
  }
  CHECK_FALSE(shared);
}

// Not every worker is awake in time for a short run: one that comes late must neither touch the
// next run's tasks before they are there nor be missed while it is at one.
TEST_CASE("a run is over when it returns, however short and however soon the next one comes") {
  thread_pool pool(3);
  std::vector<int> runs(4);
  for (int repeat = 1; repeat <= 5000; ++repeat) {
    const extent tasks = 2 + repeat % 3;
    std::fill(runs.begin(), runs.end(), 0);
    pool.run(tasks, [&](extent task, int) { runs[task] = repeat; });
    bool all = true;
    for (extent task = 0; task < tasks; ++task) all = all && runs[task] == repeat;
    REQUIRE_MESSAGE(all, "run " << repeat << " returned before all of its tasks were done");
  }
}
