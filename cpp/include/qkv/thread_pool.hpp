// One verb: run tasks. Without threads it is a plain loop, so operations have one code path.
#pragma once

#include <memory>

#include "qkv/view.hpp"

namespace qkv {

// A fixed set of threads that sleep between calls. The caller works too, as worker 0.
//
// Operations cut their work into tasks by fixed block sizes, never by the number of threads, and a
// task writes only what is its own: so the bits of a result do not depend on this class.
class thread_pool {
 public:
  // `threads` >= 1 counts the caller. Where threads cannot be had (a build without them, or the
  // system refuses), there are fewer: see size().
  explicit thread_pool(int threads);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  int size() const;

  // Calls task_function(task, worker) once for every task in [0, tasks), worker in [0, size()), and
  // returns when all are done. Not to be called from a task, nor from two threads at once.
  template <typename TaskFunction>
  void run(extent tasks, const TaskFunction& task_function) {
    run_erased(
        tasks,
        [](const void* context, extent task, int worker) {
          (*static_cast<const TaskFunction*>(context))(task, worker);
        },
        &task_function);
  }

 private:
  using erased_task = void (*)(const void* context, extent task, int worker);
  void run_erased(extent tasks, erased_task call, const void* context);

  struct threads;
  std::unique_ptr<threads> threads_;
};

}  // namespace qkv
