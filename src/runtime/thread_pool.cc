#include "runtime/thread_pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/thread.h"
#include "base/trace.h"

namespace kiln::runtime {
namespace {

// About the cost of waking a parked thread: spinning for longer never pays.
constexpr auto kSpin = std::chrono::microseconds(50);

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Spins until `done` holds or the time is up; returns whether it holds.
template <typename F>
bool SpinUntil(F&& done) {
  auto end = std::chrono::steady_clock::now() + kSpin;
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      Pause();
    }
    if (std::chrono::steady_clock::now() > end) return done();
  }
}

thread_local bool inside_task = false;

}  // namespace

struct ThreadPool::State {
  // One run. Workers join it by taking tasks; `generation` tells a new run from an old one.
  struct alignas(64) Job {
    void (*work)(void*, int64_t) = nullptr;
    void* context = nullptr;
    int64_t tasks = 0;
  };

  State(int threads, std::string pool_name) : name(std::move(pool_name)) {
    workers.reserve(threads - 1);
    try {
      for (int i = 1; i < threads; ++i) {
        workers.emplace_back([this, i] {
          TraceSink::NameThisThread(name, i);
          Work();
        });
      }
    } catch (const std::exception&) {
      // The system has no more threads: the existing ones and the caller do all the tasks.
    }
  }

  ~State() {
    {
      std::lock_guard lock(mutex);
      stop.store(true);
    }
    wake.notify_all();
    for (Thread& w : workers) w.Join();
  }

  // Takes tasks until none is left. The ticket holds the run's generation above the next task, so
  // that a late worker takes no task of the next run.
  void TakeTasks(uint64_t generation, const Job& job) {
    while (true) {
      uint64_t now = ticket.load(std::memory_order_acquire);
      if ((now >> 32) != generation) return;
      int64_t task = static_cast<int64_t>(now & 0xffffffffu);
      if (task >= job.tasks) return;
      if (!ticket.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
      job.work(job.context, task);
      finished.fetch_add(1, std::memory_order_acq_rel);
    }
  }

  void Work() {
    inside_task = true;
    uint64_t seen = 0;
    while (true) {
      auto fresh = [&] {
        return (ticket.load(std::memory_order_acquire) >> 32) != seen ||
               stop.load(std::memory_order_relaxed);
      };
      if (!SpinUntil(fresh)) {
        std::unique_lock lock(mutex);
        ++parked;
        wake.wait(lock, fresh);
        --parked;
      }
      if (stop.load()) return;
      // The job is read between two reads of the generation: a change in between invalidates it.
      busy.fetch_add(1, std::memory_order_acq_rel);
      seen = ticket.load(std::memory_order_acquire) >> 32;
      if (open.load(std::memory_order_acquire) == seen) TakeTasks(seen, job);
      busy.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void Run(int64_t tasks, void (*work)(void*, int64_t), void* context) {
    // No worker may still read the job of the previous run.
    while (busy.load(std::memory_order_acquire) != 0) Pause();
    job.work = work;
    job.context = context;
    job.tasks = tasks;
    finished.store(0, std::memory_order_relaxed);
    uint64_t generation = (next_generation++ & 0x7fffffffu) + 1;
    open.store(generation, std::memory_order_release);
    {
      // Under the lock, so a worker about to park sees it or is woken.
      std::lock_guard lock(mutex);
      ticket.store(generation << 32, std::memory_order_release);
      if (parked > 0) wake.notify_all();
    }
    TakeTasks(generation, job);
    while (finished.load(std::memory_order_acquire) != tasks) Pause();
    open.store(0, std::memory_order_release);
  }

  const std::string name;
  std::vector<Thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  int parked = 0;
  Job job;
  uint64_t next_generation = 0;
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<int64_t> finished{0};
  alignas(64) std::atomic<int> busy{0};
  std::atomic<uint64_t> open{0};
  std::atomic<bool> stop{false};
  // Held by the caller whose run has the threads.
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
};

ThreadPool::ThreadPool(int threads, std::string name)
    : threads_(threads < 1 ? 1 : threads),
      state_(threads_ > 1 ? std::make_unique<State>(threads_, std::move(name)) : nullptr) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Run(int64_t tasks, void (*work)(void* context, int64_t task), void* context) {
  if (tasks > 1 && state_ && !inside_task && !state_->taken.test_and_set()) {
    inside_task = true;
    state_->Run(tasks, work, context);
    inside_task = false;
    state_->taken.clear();
    return;
  }
  for (int64_t task = 0; task < tasks; ++task) work(context, task);
}

}  // namespace kiln::runtime
