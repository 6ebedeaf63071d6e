// How the threads of a pool share the tasks of a run: libkiln and programs compiled ahead of time
// share it. Uses nothing of the C++ library that is not in headers.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace kiln::runtime {

class TaskBoard {
 public:
  using Work = void (*)(void* context, int64_t task);

  TaskBoard() = default;
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;
  ~TaskBoard() {
    pthread_cond_destroy(&done_);
    pthread_cond_destroy(&wake_);
    pthread_mutex_destroy(&mutex_);
  }

  // The life of a thread of the pool: takes tasks until Stop().
  void Serve() {
    inside_task = true;
    uint64_t seen = 0;
    int64_t patience = kMostSpin;
    while (true) {
      auto fresh = [&] {
        return (ticket_.load(std::memory_order_acquire) >> 32) != seen ||
               stop_.load(std::memory_order_relaxed);
      };
      const int64_t begin = Nanoseconds();
      if (!SpinUntil(fresh, patience)) {
        pthread_mutex_lock(&mutex_);
        ++parked_;
        while (!fresh()) pthread_cond_wait(&wake_, &mutex_);
        --parked_;
        pthread_mutex_unlock(&mutex_);
        // The time of waking is as long as that of spinning.
        const bool was_short = Nanoseconds() - begin < 2 * kMostSpin;
        patience = was_short ? kMostSpin : std::max(patience / 2, kLeastSpin);
      }
      if (stop_.load()) return;
      // The job is read between two reads of the generation: a change in between invalidates it.
      busy_.fetch_add(1, std::memory_order_acq_rel);
      seen = ticket_.load(std::memory_order_acquire) >> 32;
      if (open_.load(std::memory_order_acquire) == seen) TakeTasks(seen, job_);
      busy_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  // Ends all threads in Serve(), to be joined.
  void Stop() {
    pthread_mutex_lock(&mutex_);
    stop_.store(true);
    pthread_mutex_unlock(&mutex_);
    pthread_cond_broadcast(&wake_);
  }

  // Runs all tasks, on the threads in Serve() and the caller's. False where the threads are another
  // caller's, or the caller is one of them: then nothing was done.
  bool Run(int64_t tasks, Work work, void* context) {
    if (inside_task || taken_.test_and_set()) return false;
    inside_task = true;
    RunOnAll(tasks, work, context);
    inside_task = false;
    taken_.clear();
    return true;
  }

 private:
  // One run. Threads join it by taking tasks; the generation tells a new run from an old one.
  struct alignas(64) Job {
    Work work = nullptr;
    void* context = nullptr;
    int64_t tasks = 0;
  };

  // In nanoseconds. About the cost of waking a parked thread: spinning for longer never pays. A
  // thread that has spun in vain spins less the next time: other programs want the processor.
  static constexpr int64_t kMostSpin = 50'000, kLeastSpin = 1'000;
  // The wait for a run's last task, which is likely to be at work.
  static constexpr int64_t kMostWait = 200'000;

  static void Pause() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static int64_t Nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  // Spins until `done` holds or the time is up; returns whether it holds.
  template <typename F>
  static bool SpinUntil(const F& done, int64_t nanoseconds) {
    const int64_t end = Nanoseconds() + nanoseconds;
    while (true) {
      for (int i = 0; i < 32; ++i) {
        if (done()) return true;
        Pause();
      }
      if (Nanoseconds() > end) return done();
    }
  }

  // Takes tasks until none is left. The ticket holds the run's generation above the next task, so
  // that a late thread takes no task of the next run.
  void TakeTasks(uint64_t generation, const Job& job) {
    while (true) {
      uint64_t now = ticket_.load(std::memory_order_acquire);
      if ((now >> 32) != generation) return;
      const auto task = static_cast<int64_t>(now & 0xffffffffu);
      if (task >= job.tasks) return;
      if (!ticket_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
      job.work(job.context, task);
      // The caller waits for the last one, and either sees the number or is seen waiting.
      if (finished_.fetch_add(1) + 1 != job.tasks || !waits_.load()) continue;
      pthread_mutex_lock(&mutex_);
      pthread_cond_signal(&done_);
      pthread_mutex_unlock(&mutex_);
    }
  }

  // On a busy machine a thread with a task may be without a processor for milliseconds: the caller
  // leaves its own to it.
  void WaitFor(int64_t tasks) {
    const auto done = [&] { return finished_.load() == tasks; };
    if (SpinUntil(done, kMostWait)) return;
    pthread_mutex_lock(&mutex_);
    waits_.store(true);
    while (!done()) pthread_cond_wait(&done_, &mutex_);
    waits_.store(false);
    pthread_mutex_unlock(&mutex_);
  }

  void RunOnAll(int64_t tasks, Work work, void* context) {
    // No thread may still read the job of the previous run.
    const auto idle = [&] { return busy_.load(std::memory_order_acquire) == 0; };
    while (!SpinUntil(idle, kMostSpin)) sched_yield();
    job_.work = work;
    job_.context = context;
    job_.tasks = tasks;
    finished_.store(0, std::memory_order_relaxed);
    const uint64_t generation = (next_generation_++ & 0x7fffffffu) + 1;
    open_.store(generation, std::memory_order_release);
    // Under the lock, so a thread about to park sees it or is woken.
    pthread_mutex_lock(&mutex_);
    ticket_.store(generation << 32, std::memory_order_release);
    if (parked_ > 0) pthread_cond_broadcast(&wake_);
    pthread_mutex_unlock(&mutex_);
    TakeTasks(generation, job_);
    WaitFor(tasks);
    open_.store(0, std::memory_order_release);
  }

  static inline thread_local bool inside_task = false;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;  // a run, or the end
  pthread_cond_t done_ = PTHREAD_COND_INITIALIZER;  // of a run's last task, for a caller that waits
  int parked_ = 0;
  Job job_;
  uint64_t next_generation_ = 0;
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> finished_{0};
  alignas(64) std::atomic<int> busy_{0};
  std::atomic<bool> waits_{false};
  std::atomic<uint64_t> open_{0};
  std::atomic<bool> stop_{false};
  // Held by the caller whose run has the threads.
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace kiln::runtime
