// Ownership by process: a child of fork() has a copy of its parent's memory, but none of the
// threads, and locks in their state at the fork.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {
namespace internal {
extern std::atomic<uint32_t> fork_generation;
}

// A number that differs between a child and its parent. Child processes without fork()'s handlers
// (vfork, clone) are not recognised.
inline uint32_t ForkGeneration() {
  return internal::fork_generation.load(std::memory_order_relaxed);
}

}  // namespace kiln
