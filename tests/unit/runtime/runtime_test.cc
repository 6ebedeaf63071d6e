#include <gtest/gtest.h>

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "base/spread.h"
#include "base/trace.h"
#include "runtime/arena.h"
#include "runtime/tasks.h"
#include "runtime/thread_pool.h"
#include "support/labels.h"

namespace kiln::runtime {
namespace {

TEST(ThreadPool, PiecesCoverEverythingOnce) {
  for (int64_t items : {0, 1, 7, 64, 1001}) {
    for (int64_t pieces : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int64_t p = 0; p < pieces; ++p) {
        Range r = PieceOf(items, pieces, p);
        EXPECT_EQ(r.begin, next);
        EXPECT_LE(r.end - r.begin, items / pieces + 1);
        next = r.end;
      }
      EXPECT_EQ(next, items);
    }
  }
}

TEST(ThreadPool, RunsEveryTaskOnceFromManyCallers) {
  ThreadPool pool(3);
  auto call = [&] {
    for (int run = 0; run < 2000; ++run) {
      std::atomic<int> counts[5] = {};
      pool.Run(
          5,
          [](void* context, int64_t task) {
            static_cast<std::atomic<int>*>(context)[task].fetch_add(1);
          },
          counts);
      for (auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
  };
  std::thread a(call), b(call), c(call);
  a.join();
  b.join();
  c.join();
}

TEST(ThreadPool, WakesParkedThreadsAndTakesNestedRuns) {
  ThreadPool pool(2);
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    struct Context {
      ThreadPool* pool;
      std::atomic<int> inner{0};
    } context{&pool};
    pool.Run(
        4,
        [](void* p, int64_t) {
          auto* c = static_cast<Context*>(p);
          c->pool->Run(
              3, [](void* q, int64_t) { static_cast<Context*>(q)->inner.fetch_add(1); }, c);
        },
        &context);
    EXPECT_EQ(context.inner.load(), 12);
  }
}

// Two tasks that wait for each other, so that two threads have one each; what a pool's own thread
// then does.
void Meet(ThreadPool& pool, const std::function<void()>& own) {
  struct Meeting {
    const std::thread::id caller = std::this_thread::get_id();
    const std::function<void()>& own;
    std::atomic<int> here{0};
  } meeting{.own = own};
  pool.Run(
      2,
      [](void* context, int64_t) {
        auto* m = static_cast<Meeting*>(context);
        m->here.fetch_add(1);
        while (m->here.load() < 2) std::this_thread::yield();
        if (std::this_thread::get_id() != m->caller) m->own();
      },
      &meeting);
}

// The pool's own thread sleeps, for it is as one whose processor was taken.
void MeetAndSleep(ThreadPool& pool, std::chrono::milliseconds sleep) {
  Meet(pool, [&] { std::this_thread::sleep_for(sleep); });
}

// How many of some tasks another thread than the caller's takes, where the caller is slow.
int TakenByOthers(ThreadPool& pool) {
  struct Tasks {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> others{0};
  } tasks;
  pool.Run(
      20,
      [](void* context, int64_t) {
        auto* t = static_cast<Tasks*>(context);
        if (std::this_thread::get_id() != t->caller) {
          t->others.fetch_add(1);
        } else {
          const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
          while (std::chrono::steady_clock::now() < end) {
          }
        }
      },
      &tasks);
  return tasks.others.load();
}

// A busy machine takes processors, too: it is tried again until a while is quiet.
TEST(ThreadPool, AThreadWhoseProcessorWasTakenRests) {
  using std::chrono::milliseconds;
  bool seen = false;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       !seen && std::chrono::steady_clock::now() < end;) {
    ThreadPool pool(2);
    MeetAndSleep(pool, milliseconds(0));
    // Once is no sign.
    MeetAndSleep(pool, milliseconds(3));
    MeetAndSleep(pool, milliseconds(0));
    MeetAndSleep(pool, milliseconds(3));
    const auto start = std::chrono::steady_clock::now();
    const int taken = TakenByOthers(pool);
    // On a busy machine the rest may be over before the tasks are.
    if (std::chrono::steady_clock::now() - start > milliseconds(4)) continue;
    EXPECT_EQ(taken, 0);
    seen = true;
    // It comes back.
    MeetAndSleep(pool, milliseconds(0));
  }
  EXPECT_TRUE(seen);
}

// By clocks of its own: a busy machine takes processors, too.
class Thread {
 public:
  explicit Thread(int of) : of_(of) {}
  // Milliseconds until the thread has tasks again, after some with and without a processor.
  double RestAfter(double with, double without) {
    const ThreadTimes begin = now_;
    now_.wall += static_cast<int64_t>((with + without) * 1e6);
    now_.own += static_cast<int64_t>(with * 1e6);
    const int64_t rest = starvation_.RestAfter(of_, begin, now_);
    now_.wall += rest;
    return static_cast<double>(rest) / 1e6;
  }

 private:
  const int of_;
  ThreadTimes now_ = {};
  Starvation starvation_;
};

// As on a machine that is shared with others, whose processors stand now and then.
TEST(ThreadPool, AThreadWithLittleLossGoesOn) {
  Thread thread(8);
  for (int loss = 0; loss < 20; ++loss) EXPECT_EQ(thread.RestAfter(27, 3), 0);
  for (int loss = 0; loss < 100; ++loss) EXPECT_EQ(thread.RestAfter(0.1, 0.1), 0);
}

// One of two threads still does something where it has its processor for half of the time.
TEST(ThreadPool, AThreadGoesOnWhileItDoesMoreThanItCosts) {
  Thread of_two(2), of_four(4);
  for (int loss = 0; loss < 20; ++loss) EXPECT_EQ(of_two.RestAfter(3, 2.5), 0);
  EXPECT_EQ(of_four.RestAfter(3, 2.5), 0);
  EXPECT_GT(of_four.RestAfter(3, 2.5), 0);
}

TEST(ThreadPool, RestsGrowWhileThereIsOtherWork) {
  Thread thread(2);
  EXPECT_EQ(thread.RestAfter(0, 3), 0);
  double rest = thread.RestAfter(0, 3);
  EXPECT_GT(rest, 0);
  for (int again = 0; again < 3; ++again) {
    const double next = thread.RestAfter(1, 3);
    EXPECT_EQ(next, 2 * rest);
    rest = next;
  }
  for (int again = 0; again < 5; ++again) EXPECT_LE(thread.RestAfter(1, 3), 100);
  // Losses are forgotten.
  for (int task = 0; task < 10; ++task) EXPECT_EQ(thread.RestAfter(30, 0), 0);
  EXPECT_EQ(thread.RestAfter(0, 1), 0);
  EXPECT_EQ(thread.RestAfter(30, 3), 0);
}

// The processors that the calling thread may have.
cpu_set_t Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof(set), &set), 0);
  return set;
}

// The pool's own thread of a pool of two, and its processors in a run.
struct OwnThread {
  pthread_t thread;
  cpu_set_t processors;
};

OwnThread ThreadOf(ThreadPool& pool) {
  OwnThread own;
  Meet(pool, [&] { own = {.thread = pthread_self(), .processors = Processors()}; });
  return own;
}

// Whether a thread that was parked has these processors in a run. One that is still spinning has
// those of the last run.
bool GetsProcessors(ThreadPool& pool, const cpu_set_t& expected) {
  for (int tries = 0; tries < 2000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const cpu_set_t set = ThreadOf(pool).processors;
    if (CPU_EQUAL(&set, &expected)) return true;
  }
  return false;
}

TEST(ThreadPool, KeepsOffTheCallersProcessor) {
  const cpu_set_t all = Processors();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  ThreadPool pool(2);
  std::thread caller([&] {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      cpu_set_t here, others = all;
      CPU_ZERO(&here);
      CPU_SET(cpu, &here);
      CPU_CLR(cpu, &others);
      ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(here), &here), 0);
      EXPECT_TRUE(GetsProcessors(pool, others)) << cpu;
    }
    // Whoever gives it one processor is obeyed, also where the caller has the same one.
    const cpu_set_t here = Processors();
    ASSERT_EQ(pthread_setaffinity_np(ThreadOf(pool).thread, sizeof(here), &here), 0);
    for (const cpu_set_t& callers : {here, all}) {
      ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(callers), &callers), 0);
      for (int run = 0; run < 5; ++run) EXPECT_TRUE(GetsProcessors(pool, here));
    }
  });
  caller.join();
  // More threads than processors need the caller's, too.
  ThreadPool many(CPU_COUNT(&all) + 1);
  for (int run = 0; run < 5; ++run) EXPECT_TRUE(GetsProcessors(many, all));
}

// Threads with stacks larger than the address space cannot be made.
TEST(ThreadPool, DoesWithTheThreadsThatTheSystemGives) {
  pthread_attr_t normal, huge;
  ASSERT_EQ(pthread_getattr_default_np(&normal), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  ThreadPool pool(3);
  ASSERT_EQ(pthread_setattr_default_np(&normal), 0);
  std::atomic<int> done{0};
  pool.Run(
      7, [](void* context, int64_t) { static_cast<std::atomic<int>*>(context)->fetch_add(1); },
      &done);
  EXPECT_EQ(done.load(), 7);
}

TEST(Allocator, CountsAndFailsWithSizes) {
  Allocator allocator;
  auto memory = allocator.Allocate(100);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % Allocator::kAlignment, 0u);
  EXPECT_EQ(allocator.live_bytes(), 100);
  allocator.Deallocate(*memory, 100);
  EXPECT_EQ(allocator.live_bytes(), 0);
  EXPECT_EQ(allocator.peak_bytes(), 100);

  AllocatorHooks none{.allocate = [](void*, size_t, size_t) -> void* { return nullptr; }};
  Allocator empty(none);
  auto failure = empty.Allocate(1 << 20);
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.status().code(), Code::kResourceExhausted);
  EXPECT_NE(failure.status().message().find("1048576"), std::string_view::npos);
}

// Of a pool's blocks and of arrays in huge pages of their own.
TEST(Allocator, ArraysOfWholePagesAreSpread) {
#if defined(__SANITIZE_ADDRESS__)
  const std::vector<int64_t> sizes = {4 << 20};
#else
  const std::vector<int64_t> sizes = {256 << 10, 1 << 20, 4 << 20};
#endif
  Allocator allocator;
  for (const int64_t bytes : sizes) {
    std::vector<std::byte*> arrays;
    std::set<uintptr_t> places;
    for (int k = 0; k < 4; ++k) {
      arrays.push_back(*allocator.Allocate(bytes));
      std::memset(arrays.back(), k, static_cast<size_t>(bytes));
      const auto address = reinterpret_cast<uintptr_t>(arrays.back());
      EXPECT_EQ(address % Allocator::kAlignment, 0u);
      places.insert(address % kSpreadPageBytes);
    }
    EXPECT_EQ(places.size(), arrays.size()) << bytes;
    for (std::byte* array : arrays) allocator.Deallocate(array, bytes);
  }
  EXPECT_EQ(allocator.live_bytes(), 0);
}

TEST(ArenaCache, GivesEachRunItsOwnAndKeepsThem) {
  Allocator allocator;
  {
    ArenaCache cache(allocator, 4096);
    std::byte* a = *cache.Acquire();
    std::byte* b = *cache.Acquire();
    EXPECT_NE(a, b);
    cache.Release(a);
    cache.Release(b);
    EXPECT_EQ(allocator.live_bytes(), 8192);
    std::byte* c = *cache.Acquire();
    std::byte* d = *cache.Acquire();
    EXPECT_TRUE((c == a && d == b) || (c == b && d == a));
    cache.Release(c);
    cache.Release(d);
  }
  EXPECT_EQ(allocator.live_bytes(), 0);
}

TEST(Trace, ThreadsHaveNamesAndNumbersStayNumbers) {
  TraceSink sink;
  int32_t lane = 0;
  std::thread([&] {
    TraceSink::NameThisThread("worker", 3);
    lane = TraceSink::LaneOfThisThread();
    TraceSpan span(&sink, "work", "kernel");
    span.AddArg("flops", int64_t{12});
    span.AddArg("by", "hand");
  }).join();
  EXPECT_EQ(sink.LaneName(lane), "kiln worker 3");
  { TraceSpan span(&sink, "more", "kernel"); }
  EXPECT_FALSE(sink.LaneName(TraceSink::LaneOfThisThread()).empty());
  { TraceSpan nothing(nullptr, "nothing", "kernel"); }
  EXPECT_EQ(sink.size(), 2u);
  EXPECT_NE(sink.ToChromeJson().find("\"args\": {\"flops\": 12, \"by\": \"hand\"}"),
            std::string::npos);
}

TEST(Trace, WritesChromeEvents) {
  TraceSink sink;
  sink.NameLane(1, "main \"thread\"");
  sink.Add({"k", "kernel", 5000, 1234, 1, {{"ops", "a, b"}}});
  sink.ForDevice("CPU:1").Add({"l", "kernel", 6000, 10, 1, {}});
  EXPECT_EQ(sink.ToChromeJson(),
            "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
            "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"args\": "
            "{\"name\": \"host\"}},\n"
            "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 2, \"tid\": 0, \"args\": "
            "{\"name\": \"CPU:1\"}},\n"
            "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"args\": "
            "{\"name\": \"main \\\"thread\\\"\"}},\n"
            "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 2, \"tid\": 1, \"args\": "
            "{\"name\": \"main \\\"thread\\\"\"}},\n"
            "{\"name\": \"k\", \"cat\": \"kernel\", \"ph\": \"X\", \"ts\": 0.000, \"dur\": 1.234, "
            "\"pid\": 1, \"tid\": 1, \"args\": {\"ops\": \"a, b\"}},\n"
            "{\"name\": \"l\", \"cat\": \"kernel\", \"ph\": \"X\", \"ts\": 1.000, \"dur\": 0.010, "
            "\"pid\": 2, \"tid\": 1, \"args\": {}}\n]}\n");
}

KILN_LABEL(text, "Trace");

}  // namespace
}  // namespace kiln::runtime
