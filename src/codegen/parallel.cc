#include "codegen/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "base/block_cache.h"
#include "base/thread.h"
#include "base/trace.h"

namespace kiln::codegen {

void InParallel(size_t threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr thrown;
  auto take = [&]() noexcept {
    const BlockCacheScope blocks;
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<Thread> others;
  others.reserve(std::min(threads, count));
  for (size_t i = 1; i < std::min(threads, count); ++i) {
    try {
      others.emplace_back([&take, i] {
        TraceSink::NameThisThread("codegen", static_cast<int64_t>(i));
        take();
      });
    } catch (const std::exception&) {  // No thread to be had: the others do its share.
      break;
    }
  }
  take();
  for (Thread& t : others) t.Join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace kiln::codegen
