// Where a run finds a program's memory.
#pragma once

#include <cstddef>
#include <span>

#include "program/program.h"

namespace kiln::program {

// Puts the addresses of a program's memory into `addresses`, by allocation. `constants` has those
// of its constants, and of what is made of its frozen arguments.
template <typename Address>
void BindAllocations(const Program& program, std::span<const void* const> arguments,
                     std::span<void* const> results, const Addresses& constants, std::byte* arena,
                     Address** addresses) {
  for (AllocationId id : program.allocations.ids()) {
    const Allocation& a = program.allocations[id];
    Address*& address = addresses[id.index()];
    switch (a.kind) {
      case Allocation::Kind::kParameter:
        address = static_cast<Address*>(const_cast<void*>(arguments[a.number]));
        break;
      case Allocation::Kind::kResult:
        address = static_cast<Address*>(results[a.number]);
        break;
      case Allocation::Kind::kConstant:
      case Allocation::Kind::kBound:
        address = constants[id];
        break;
      case Allocation::Kind::kArena:
        address = arena;
        break;
    }
  }
}

}  // namespace kiln::program
