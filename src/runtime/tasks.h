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

// By the wall's clock, and by the thread's, which stands while it has no processor; in nanoseconds.
struct ThreadTimes {
  int64_t wall, own;
};

// A thread whose processor is taken from it within a task holds up the whole run. Where that
// happens for a large part of its time, other programs have the processor, and the other threads
// are faster without this one: it takes no tasks for a while, longer each time. A small part is
// no sign: any machine has other work now and then, and one that is shared with other machines
// has it all the time.
//
// Of n threads, the others take n / (n - 1) of the time: this one costs more than it does where
// it loses 1 / n of its time.
class Starvation {
 public:
  // How long the thread, one of so many, is to rest that spun and had tasks from begin to end; 0
  // for not at all.
  int64_t RestAfter(int threads, const ThreadTimes& begin, const ThreadTimes& end) {
    const int64_t wall = end.wall - begin.wall, lost = wall - (end.own - begin.own);
    if (wall_ > kMemory) {
      wall_ /= 2;
      lost_ /= 2;
    }
    wall_ += wall;
    lost_ += lost;
    const int64_t break_even = wall_ / std::min(threads, kMostShares);
    if (lost < kLeastLoss || lost_ < std::max(kLeastLosses, break_even)) return 0;
    const bool again = end.wall - awake_since_ < kMemory;
    rest_ = again ? std::min(2 * rest_, kMostRest) : kLeastRest;
    awake_since_ = end.wall + rest_;
    return rest_;
  }

 private:
  static constexpr int64_t kLeastLoss = 200'000, kLeastLosses = 4'000'000, kMemory = 50'000'000;
  // Less than a quarter is a small part, however many threads there are.
  static constexpr int kMostShares = 4;
  static constexpr int64_t kLeastRest = 5'000'000, kMostRest = 80'000'000;

  // Of the last kMemory, about, that the thread spun or had tasks; what it lost of it.
  int64_t wall_ = 0, lost_ = 0;
  // The last rest, and its end.
  int64_t rest_ = 0, awake_since_ = -kMemory;
};

class TaskBoard {
 public:
  using Work = void (*)(void* context, int64_t task);

  TaskBoard() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&rested_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;
  ~TaskBoard() {
    pthread_cond_destroy(&rested_);
    pthread_cond_destroy(&done_);
    pthread_cond_destroy(&wake_);
    pthread_mutex_destroy(&mutex_);
  }

  // The life of a thread of the pool: takes tasks until Stop().
  void Serve() {
    inside_task = true;
    Server self;
    serving_.fetch_add(1);
    uint64_t seen = 0;
    int64_t patience = kMostSpin;
    Starvation starvation;
    ThreadTimes begin = Now();
    while (true) {
      auto fresh = [&] {
        return (ticket_.load(std::memory_order_acquire) >> 32) != seen ||
               stop_.load(std::memory_order_relaxed);
      };
      if (!SpinUntil(fresh, patience)) {
        pthread_mutex_lock(&mutex_);
        self.next = parked_;
        parked_ = &self;
        while (!fresh()) pthread_cond_wait(&wake_, &mutex_);
        Server** link = &parked_;
        while (*link != &self) link = &(*link)->next;
        *link = self.next;
        pthread_mutex_unlock(&mutex_);
        // The time of waking is as long as that of spinning.
        const ThreadTimes awake = Now();
        const bool was_short = awake.wall - begin.wall < 2 * kMostSpin;
        begin = awake;
        patience = was_short ? kMostSpin : std::max(patience / 2, kLeastSpin);
      }
      if (stop_.load()) return;
      // The job is read between two reads of the generation: a change in between invalidates it.
      busy_.fetch_add(1, std::memory_order_acq_rel);
      seen = ticket_.load(std::memory_order_acquire) >> 32;
      const bool took = open_.load(std::memory_order_acquire) == seen && TakeTasks(seen, job_);
      busy_.fetch_sub(1, std::memory_order_acq_rel);
      const ThreadTimes end = Now();
      const int64_t rest = took ? starvation.RestAfter(threads(), begin, end) : 0;
      if (rest > 0) Rest(rest);
      begin = rest > 0 ? Now() : end;
    }
  }

  // Ends all threads in Serve(), to be joined.
  void Stop() {
    pthread_mutex_lock(&mutex_);
    stop_.store(true);
    pthread_mutex_unlock(&mutex_);
    pthread_cond_broadcast(&wake_);
    pthread_cond_broadcast(&rested_);
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
  // A thread in Serve(). The system may wake it on the caller's processor although others are idle:
  // a virtual machine's idle processors look taken to it, and the load of a processor that slept is
  // an old figure. There it would wait until the caller is done with its own tasks. So it is kept
  // off that processor from before it wakes until a caller is on another one.
  struct Server {
    const pthread_t thread = pthread_self();
    Server* next = nullptr;  // of those that are parked
    // The processors that it was given by the program or its user, and those that are left.
    cpu_set_t given, left;
    // What KeepOff was last called with.
    int kept_off = -1, among = 0;

    // Where the threads, with the caller so many, have a processor each. More of them may have
    // begun to serve since the last call.
    void KeepOff(int processor, int threads) {
      if (kept_off == processor && among == threads) return;
      cpu_set_t now;
      if (processor < 0 || processor >= CPU_SETSIZE ||
          pthread_getaffinity_np(thread, sizeof(now), &now) != 0) {
        return;
      }
      if (kept_off < 0 || !CPU_EQUAL(&now, &left)) given = now;
      left = given;
      if (CPU_COUNT(&given) >= threads) CPU_CLR(processor, &left);
      if (CPU_EQUAL(&now, &left) || pthread_setaffinity_np(thread, sizeof(left), &left) == 0) {
        kept_off = processor;
        among = threads;
      }
    }
  };

  // With the caller of a run.
  int threads() const { return serving_.load() + 1; }

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

  static int64_t Nanoseconds(clockid_t clock = CLOCK_MONOTONIC) {
    timespec now;
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  static ThreadTimes Now() { return {Nanoseconds(), Nanoseconds(CLOCK_THREAD_CPUTIME_ID)}; }

  void Rest(int64_t nanoseconds) {
    const int64_t end = Nanoseconds() + nanoseconds;
    const timespec until = {.tv_sec = static_cast<time_t>(end / 1'000'000'000),
                            .tv_nsec = static_cast<long>(end % 1'000'000'000)};
    pthread_mutex_lock(&mutex_);
    while (!stop_.load() && Nanoseconds() < end) pthread_cond_timedwait(&rested_, &mutex_, &until);
    pthread_mutex_unlock(&mutex_);
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
  // that a late thread takes no task of the next run. Returns whether it took any.
  bool TakeTasks(uint64_t generation, const Job& job) {
    bool took = false;
    while (true) {
      uint64_t now = ticket_.load(std::memory_order_acquire);
      if ((now >> 32) != generation) return took;
      const auto task = static_cast<int64_t>(now & 0xffffffffu);
      if (task >= job.tasks) return took;
      if (!ticket_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
      took = true;
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
    if (parked_) {
      const int here = sched_getcpu(), count = threads();
      for (Server* s = parked_; s; s = s->next) s->KeepOff(here, count);
      pthread_cond_broadcast(&wake_);
    }
    pthread_mutex_unlock(&mutex_);
    TakeTasks(generation, job_);
    WaitFor(tasks);
    open_.store(0, std::memory_order_release);
  }

  static inline thread_local bool inside_task = false;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER;  // a run, or the end
  pthread_cond_t done_ = PTHREAD_COND_INITIALIZER;  // of a run's last task, for a caller that waits
  pthread_cond_t rested_;                           // the end, for a thread that rests
  Server* parked_ = nullptr;
  Job job_;
  uint64_t next_generation_ = 0;
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> finished_{0};
  alignas(64) std::atomic<int> busy_{0};
  std::atomic<int> serving_{0};
  std::atomic<bool> waits_{false};
  std::atomic<uint64_t> open_{0};
  std::atomic<bool> stop_{false};
  // Held by the caller whose run has the threads.
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace kiln::runtime
