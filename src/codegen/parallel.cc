#include "codegen/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln::codegen {

void InParallel(size_t threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(threads, count); ++i) {
    try {
      others.emplace_back(take);
    } catch (const std::system_error&) {  // No thread to be had: the others do its share.
      break;
    }
  }
  take();
  for (std::thread& t : others) t.join();
}

}  // namespace kiln::codegen
