// The constants of a program that a device has loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "program/program.h"
#include "runtime/arena.h"

namespace kiln::runtime {

class LoadedConstants {
 public:
  // Of a program in its place: both outlive this.
  LoadedConstants(MemorySource& source, program::Program& program)
      : source_(source), program_(program) {}
  ~LoadedConstants();
  LoadedConstants(const LoadedConstants&) = delete;
  LoadedConstants& operator=(const LoadedConstants&) = delete;

  // Memory for each constant, and the literals by `copy(to, from, bytes)`; a null `from` asks for
  // zeros, so that the gaps of what the prologue writes are the same in every process. One copy is
  // enough: the program's go.
  using Copy = std::function<Status(std::byte* to, const void* from, int64_t bytes)>;
  Status Load(const Copy& copy);
  // Frees the constants read by the prologue alone, which has run.
  void FreeUnused();

  // Makes `saved`, a copy of the program, a program without prologue, whose constants are the
  // memory as it is.
  Status Save(program::Program& saved, const Copy& copy) const;

  // By allocation; null for other allocations. The prologue's view of memory.
  const program::Addresses& addresses() const { return addresses_; }

 private:
  void Free(program::AllocationId id);

  MemorySource& source_;
  program::Program& program_;
  program::Addresses addresses_;
};

}  // namespace kiln::runtime
