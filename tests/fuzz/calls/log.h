// What the process of a sequence of calls tells the one that watches it: in memory that both have,
// as it may end at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln::fuzz {

inline constexpr size_t kMaxThreads = 4, kMaxFunctions = 512;
inline constexpr int kFinding = 42;

struct Log {
  std::atomic<uint64_t> sequence;  // that goes on
  std::atomic<uint64_t> calls;     // so far, of all sequences
  std::atomic<uint64_t> called[kMaxFunctions], succeeded[kMaxFunctions];
  std::atomic<uint64_t> compiled, executed, compared, ill_conditioned;
  std::atomic<bool> has_found;  // the first finding is the one that is told
  char problem[1 << 14], folder[256];
  struct Thread {
    std::atomic<size_t> length;
    char text[1 << 20];  // a line for each call of the sequence; the last one may not have returned
  } threads[kMaxThreads];
};
// Made before there are processes.
extern Log* shared_log;

}  // namespace kiln::fuzz
