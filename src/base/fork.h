// Whether this process is the one that made something: a child of fork() has the memory of what its
// parent made, but none of the threads, and locks as they were.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {
namespace internal {
extern std::atomic<uint32_t> fork_generation;
}

// Another number in a child than in its parent. Child processes without fork()'s handlers (vfork,
// clone) are not told apart.
inline uint32_t ForkGeneration() {
  return internal::fork_generation.load(std::memory_order_relaxed);
}

}  // namespace kiln
