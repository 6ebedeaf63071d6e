// What a loaded program makes of its frozen arguments.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "program/frozen.h"
#include "program/program.h"
#include "program/steps.h"
#include "runtime/arena.h"

namespace kiln::runtime {

// The memory in which runs find it: immutable, for any number of runs. A group that is bound anew
// is in another binding, which shares the memory of the other groups. The program's constants and
// the source of its memory outlive it.
class Binding {
 public:
  // By allocation: the program's constants, and what is made of the frozen arguments of the groups
  // that are bound; null for others.
  const program::Addresses& addresses() const { return addresses_; }

 private:
  friend class Binder;
  class Memory;
  std::vector<std::shared_ptr<const Memory>> groups_;
  program::Addresses addresses_;
};

// Makes the bindings of a loaded program, which outlives it.
class Binder {
 public:
  Binder(MemorySource& source, const program::Program& program);
  ~Binder();

  // Runs the steps of a group with memory at the given addresses.
  using RunGroup = std::function<Status(size_t group, const program::Addresses& addresses)>;
  // `previous` with some groups bound to other arguments, which stand under their numbers; null:
  // none is bound yet. `constants` has the addresses of the program's constants. The arguments are
  // read during the call only, except those that runs read (program::KeptArguments).
  Result<std::shared_ptr<const Binding>> Bind(const Binding* previous,
                                              const program::Addresses& constants,
                                              std::span<const size_t> groups,
                                              std::span<const void* const> arguments,
                                              const RunGroup& run) const;

  const std::vector<program::FrozenGroup>& groups() const { return groups_; }

 private:
  Result<std::shared_ptr<const Binding::Memory>> BindGroup(size_t group,
                                                           std::span<const void* const> arguments,
                                                           program::Addresses& addresses,
                                                           const RunGroup& run) const;

  MemorySource& source_;
  const program::Program& program_;
  const std::vector<program::FrozenGroup> groups_;
  const IdVector<program::AllocationId, bool> used_;
};

}  // namespace kiln::runtime
