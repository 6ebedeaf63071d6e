// Threads of the run time's own.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "kiln/aot.h"
#include "runtime/tasks.h"

namespace kiln::rt {
namespace {

// As of libkiln's threads.
constexpr size_t kStackBytes = size_t{8} << 20;
// Of CPUs, as many as a mask of the C library has.
constexpr int32_t kMostThreads = CPU_SETSIZE;

struct Pool {
  kiln_aot_pool pool;  // the first member
  runtime::TaskBoard board;
  int32_t worker_count = 0;
  pthread_t workers[kMostThreads];
};

int32_t CpusOfProcess() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? std::max(CPU_COUNT(&cpus), 1) : 1;
}

void Run(kiln_aot_pool* pool, int64_t tasks, void (*work)(void*, int64_t), void* context) {
  if (reinterpret_cast<Pool*>(pool)->board.Run(tasks, work, context)) return;
  for (int64_t task = 0; task < tasks; ++task) work(context, task);
}

void* Serve(void* board) {
  static_cast<runtime::TaskBoard*>(board)->Serve();
  return nullptr;
}

// Without signals sent to the process; synchronous ones must not be blocked.
sigset_t SignalsOfOthers() {
  sigset_t signals;
  sigfillset(&signals);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&signals, own);
  }
  return signals;
}

void StartWorkers(Pool& pool, int32_t count) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const sigset_t blocked = SignalsOfOthers();
  sigset_t callers;
  pthread_sigmask(SIG_BLOCK, &blocked, &callers);
  while (pool.worker_count < count &&
         pthread_create(&pool.workers[pool.worker_count], &attributes, Serve, &pool.board) == 0) {
    ++pool.worker_count;
  }
  pthread_sigmask(SIG_SETMASK, &callers, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace kiln::rt

using kiln::rt::Pool;

kiln_aot_pool* kiln_aot_pool_create(int32_t threads) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(Pool), sizeof(Pool)) != 0) return nullptr;
  Pool* pool = new (memory) Pool;
  if (threads <= 0) threads = kiln::rt::CpusOfProcess();
  kiln::rt::StartWorkers(*pool, std::min(threads - 1, kiln::rt::kMostThreads));
  pool->pool = {.threads = pool->worker_count + 1, .reserved = 0, .run = kiln::rt::Run};
  return &pool->pool;
}

void kiln_aot_pool_destroy(kiln_aot_pool* handle) {
  if (!handle) return;
  Pool* pool = reinterpret_cast<Pool*>(handle);
  pool->board.Stop();
  for (int32_t i = 0; i < pool->worker_count; ++i) pthread_join(pool->workers[i], nullptr);
  pool->~Pool();
  std::free(pool);
}
