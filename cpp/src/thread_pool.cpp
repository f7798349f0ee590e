#include "qkv/thread_pool.hpp"

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#define QKV_THREADS 1
#else
#define QKV_THREADS 0
#endif

#if QKV_THREADS

#include <pthread.h>

#include <atomic>
#include <vector>

namespace qkv {

// pthreads and not <thread>: a thread that cannot be had is a return value there, not an exception.
struct thread_pool::threads {
  std::vector<pthread_t> handles;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work_ready = PTHREAD_COND_INITIALIZER;
  pthread_cond_t work_done = PTHREAD_COND_INITIALIZER;
  // Guarded by the mutex.
  unsigned generation = 0;
  int busy = 0;
  int started = 0;
  bool stopping = false;
  erased_task call = nullptr;
  const void* context = nullptr;
  extent tasks = 0;
  // Tasks are handed out one by one: whoever is free takes the next.
  std::atomic<extent> next_task{0};

  void work(int worker) {
    for (extent task = next_task++; task < tasks; task = next_task++) call(context, task, worker);
  }

  static void* thread_main(void* argument) {
    auto& self = *static_cast<threads*>(argument);
    pthread_mutex_lock(&self.mutex);
    const int worker = ++self.started;
    unsigned seen = 0;
    for (;;) {
      while (!self.stopping && self.generation == seen) {
        pthread_cond_wait(&self.work_ready, &self.mutex);
      }
      if (self.stopping) break;
      seen = self.generation;
      pthread_mutex_unlock(&self.mutex);
      self.work(worker);
      pthread_mutex_lock(&self.mutex);
      if (--self.busy == 0) pthread_cond_signal(&self.work_done);
    }
    pthread_mutex_unlock(&self.mutex);
    return nullptr;
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
  pthread_mutex_lock(&threads_->mutex);
  threads_->stopping = true;
  pthread_cond_broadcast(&threads_->work_ready);
  pthread_mutex_unlock(&threads_->mutex);
  for (pthread_t handle : threads_->handles) pthread_join(handle, nullptr);
}

int thread_pool::size() const { return static_cast<int>(threads_->handles.size()) + 1; }

void thread_pool::run_erased(extent tasks, erased_task call, const void* context) {
  threads& shared = *threads_;
  if (tasks <= 1 || shared.handles.empty()) {
    for (extent task = 0; task < tasks; ++task) call(context, task, 0);
    return;
  }
  pthread_mutex_lock(&shared.mutex);
  shared.call = call;
  shared.context = context;
  shared.tasks = tasks;
  shared.next_task = 0;
  shared.busy = static_cast<int>(shared.handles.size());
  ++shared.generation;
  pthread_cond_broadcast(&shared.work_ready);
  pthread_mutex_unlock(&shared.mutex);

  shared.work(0);

  pthread_mutex_lock(&shared.mutex);
  while (shared.busy > 0) pthread_cond_wait(&shared.work_done, &shared.mutex);
  pthread_mutex_unlock(&shared.mutex);
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
