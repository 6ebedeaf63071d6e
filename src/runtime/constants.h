// The constants of a program that a device has loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "program/program.h"
#include "runtime/arena.h"

namespace kiln::runtime {

class LoadedConstants {
 public:
  // Of a program in its place: both outlive this.
  LoadedConstants(MemorySource& source, program::Program& program, bool in_host_memory)
      : source_(source), program_(program), in_host_memory_(in_host_memory) {}
  ~LoadedConstants();
  LoadedConstants(const LoadedConstants&) = delete;
  LoadedConstants& operator=(const LoadedConstants&) = delete;

  // Memory for each constant, and the literals by `copy(to, from, bytes)`; a null `from` asks for
  // zeros, so that the gaps of what the prologue writes are the same in every process. One copy is
  // enough: the program's go. Where the source is the host's memory, a borrowed literal stays where
  // it is, if it is aligned there.
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
  const bool in_host_memory_;
  program::Addresses addresses_;
  // Those whose memory is that at their address.
  IdVector<program::AllocationId, std::shared_ptr<const Literal>> borrowed_;
};

}  // namespace kiln::runtime
