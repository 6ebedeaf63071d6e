// What a program costs: the memory that it and its runs take, and the bytes that its kernels move.
#pragma once

#include <cstdint>
#include <string>

#include "program/program.h"

namespace kiln::program {

// In bytes as they are asked of an allocator.
struct MemoryUse {
  int64_t arguments = 0;    // all arguments
  int64_t outputs = 0;      // all results
  int64_t aliased = 0;      // of these what is in the memory of arguments that are donated
  int64_t temporaries = 0;  // the arena of a run
  int64_t scratch = 0;      // in the arena: the most that one kernel needs for itself
  // Constants and what is made of them, for as long as it is loaded. What the prologue alone reads
  // goes with its end.
  int64_t constants = 0;
  // What is there at once, at the most: everything above, with donated arguments' memory once.
  int64_t peak() const { return arguments + outputs - aliased + temporaries + constants; }
};
MemoryUse MemoryOf(const Program& program);

// What kernels read and write, each of a loop's or branch's once, and copies twice their size.
int64_t BytesAccessed(const Program& program);

// Both as text, for dumps.
std::string MemoryReport(const Program& program);
std::string CostReport(const Program& program);

}  // namespace kiln::program
