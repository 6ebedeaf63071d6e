// A pool of threads that callers share: every task runs once, for each of them.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kiln/aot.h"

namespace {

constexpr int64_t kTasks = 13, kRuns = 2000;

struct Sums {
  kiln_aot_pool* pool;
  std::vector<int64_t> of_tasks = std::vector<int64_t>(kTasks, 0);  // plain: a race is an error
};

// A task with tasks of its own, which run on its thread.
void Add(void* context, int64_t task) {
  auto* sums = static_cast<Sums*>(context);
  int64_t inner[2] = {0, 0};
  auto count = [](void* counts, int64_t i) { static_cast<int64_t*>(counts)[i] += 1; };
  sums->pool->run(sums->pool, 2, count, inner);
  sums->of_tasks[static_cast<size_t>(task)] += task * inner[0] * inner[1];
}

void Use(kiln_aot_pool* pool) {
  for (int64_t run = 0; run < kRuns; ++run) {
    Sums sums{pool};
    pool->run(pool, kTasks, Add, &sums);
    for (int64_t task = 0; task < kTasks; ++task) {
      if (sums.of_tasks[static_cast<size_t>(task)] == task) continue;
      std::fprintf(stderr, "task %d ran wrongly\n", static_cast<int>(task));
      std::exit(1);
    }
    // Now and then the threads have time to park.
    if (run % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

int main() {
  kiln_aot_pool* pool = kiln_aot_pool_create(4);
  if (!pool || pool->threads < 1) return 1;
  std::thread a(Use, pool), b(Use, pool);
  Use(pool);
  a.join();
  b.join();
  kiln_aot_pool_destroy(pool);
  for (int i = 0; i < 50; ++i) kiln_aot_pool_destroy(kiln_aot_pool_create(3));
  return 0;
}
