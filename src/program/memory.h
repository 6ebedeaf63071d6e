// The cost of a program: the memory of it and of its runs, and the traffic of its kernels.
#pragma once

#include <cstdint>
#include <string>

#include "program/program.h"

namespace kiln::program {

// In bytes as they are asked of an allocator.
struct MemoryUse {
  int64_t arguments = 0;    // all arguments of a run
  int64_t outputs = 0;      // all results
  int64_t aliased = 0;      // of these what is in the memory of arguments that are donated
  int64_t temporaries = 0;  // the arena of a run
  int64_t scratch = 0;      // in the arena: the most that one kernel needs for itself
  // Constants and values computed from them, while it is loaded. Constants read only by the
  // prologue are freed at its end.
  int64_t constants = 0;
  // Frozen arguments as runs read them, while they are bound: themselves, or values computed from
  // them.
  int64_t frozen = 0;
  // The peak: everything above, with donated arguments' memory counted once.
  int64_t peak() const { return arguments + outputs - aliased + temporaries + constants + frozen; }
};
MemoryUse MemoryOf(const Program& program);

// Bytes read and written by kernels, those of loops and branches once, and copies twice their size.
int64_t BytesAccessed(const Program& program);

// Both as text, for dumps.
std::string MemoryReport(const Program& program);
std::string CostReport(const Program& program);

}  // namespace kiln::program
