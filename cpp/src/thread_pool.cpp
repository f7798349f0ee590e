#include "qkv/thread_pool.hpp"

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#define QKV_THREADS 1
#else
#define QKV_THREADS 0
#endif

#if QKV_THREADS

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__EMSCRIPTEN__)
// Of Emscripten's threading.h. A condition variable would wake in two steps, and std::atomic polls a
// clock there. Not the instruction itself: V8 11 (Node 20) loses, in its baseline tier, the locals
// that live on after it.
extern "C" {
int emscripten_futex_wait(volatile void* address, std::uint32_t value, double most_milliseconds);
int emscripten_futex_wake(volatile void* address, int count);
}
#endif

namespace qkv {

namespace {

// Sleeps while `word` holds `value`; may wake early.
void sleep_while(std::atomic<int>& word, int value) {
#if defined(__EMSCRIPTEN__)
  emscripten_futex_wait(&word, static_cast<std::uint32_t>(value),
                        std::numeric_limits<double>::infinity());
#else
  word.wait(value);
#endif
}

void wake_all(std::atomic<int>& word) {
#if defined(__EMSCRIPTEN__)
  emscripten_futex_wake(&word, std::numeric_limits<int>::max());
#else
  word.notify_all();
#endif
}

// Returns once `word` holds another value than this.
void wait_while(std::atomic<int>& word, int value) {
  while (word.load(std::memory_order_acquire) == value) sleep_while(word, value);
}

}  // namespace

// pthreads and not <thread>: a thread that cannot be had is a return value there, not an exception.
struct thread_pool::threads {
  static constexpr int closed = 1 << 16;

  std::vector<pthread_t> handles;
  std::atomic<int> started{0};
  std::atomic<bool> stopping{false};
  // What is run. Changes only while `inside` is closed and nobody is in.
  erased_task call = nullptr;
  const void* context = nullptr;
  extent tasks = 0;
  // Tasks are handed out one by one: whoever is free takes the next.
  std::atomic<extent> next_task{0};
  // Counts the calls of run(); workers wait for it to change.
  std::atomic<int> generation{0};
  // How many workers are at the tasks, and `closed` more while there are none to take: a worker
  // that wakes up late is not waited for, so that a short call takes no longer than without
  // threads.
  std::atomic<int> inside{closed};

  bool enter() {
    if (inside.fetch_add(1, std::memory_order_acq_rel) < closed) return true;
    leave();
    return false;
  }

  void leave() {
    if (inside.fetch_sub(1, std::memory_order_acq_rel) == closed + 1) wake_all(inside);
  }

  void work(int worker) {
    for (extent task = next_task++; task < tasks; task = next_task++) call(context, task, worker);
  }

  void announce() {
    generation.fetch_add(1, std::memory_order_release);
    wake_all(generation);
  }

  static void* thread_main(void* argument) {
    auto& self = *static_cast<threads*>(argument);
    const int worker = ++self.started;
    for (int seen = 0;;) {
      wait_while(self.generation, seen);
      seen = self.generation.load(std::memory_order_acquire);
      if (self.stopping) return nullptr;
      if (!self.enter()) continue;
      self.work(worker);
      self.leave();
    }
  }
};

thread_pool::thread_pool(int threads_wanted) : threads_(std::make_unique<threads>()) {
  for (int worker = 1; worker < threads_wanted; ++worker) {
    pthread_t handle;
    if (pthread_create(&handle, nullptr, threads::thread_main, threads_.get()) != 0) break;
    threads_->handles.push_back(handle);
  }
}

thread_pool::~thread_pool() {
  threads_->stopping = true;
  threads_->announce();
  for (pthread_t handle : threads_->handles) pthread_join(handle, nullptr);
}

int thread_pool::size() const { return static_cast<int>(threads_->handles.size()) + 1; }

void thread_pool::run_erased(extent tasks, erased_task call, const void* context) {
  threads& shared = *threads_;
  if (tasks <= 1 || shared.handles.empty()) {
    for (extent task = 0; task < tasks; ++task) call(context, task, 0);
    return;
  }
  shared.call = call;
  shared.context = context;
  shared.tasks = tasks;
  shared.next_task = 0;
  shared.inside.fetch_sub(threads::closed, std::memory_order_acq_rel);
  shared.announce();

  shared.work(0);

  int now = shared.inside.fetch_add(threads::closed, std::memory_order_acq_rel) + threads::closed;
  while (now != threads::closed) {
    wait_while(shared.inside, now);
    now = shared.inside.load(std::memory_order_acquire);
  }
}

}  // namespace qkv

#else

namespace qkv {

struct thread_pool::threads {};

thread_pool::thread_pool(int) {}
thread_pool::~thread_pool() = default;
int thread_pool::size() const { return 1; }

void thread_pool::run_erased(extent tasks, erased_task call, const void* context) {
  for (extent task = 0; task < tasks; ++task) call(context, task, 0);
}

}  // namespace qkv

#endif
