// Where a run finds a program's memory.
#pragma once

#include <cstddef>
#include <span>

#include "program/program.h"

namespace kiln::program {

// Puts the addresses of a program's memory into `addresses`, by allocation, as those of its
// constants are in `constants`.
template <typename Address>
void BindAllocations(const Program& program, std::span<const void* const> arguments,
                     std::span<void* const> results, Address* const* constants, std::byte* arena,
                     Address** addresses) {
  for (size_t i = 0; i < program.allocations.size(); ++i) {
    const Allocation& a = program.allocations[i];
    const auto number = static_cast<size_t>(a.number);
    switch (a.kind) {
      case Allocation::Kind::kParameter:
        addresses[i] = static_cast<Address*>(const_cast<void*>(arguments[number]));
        break;
      case Allocation::Kind::kResult:
        addresses[i] = static_cast<Address*>(results[number]);
        break;
      case Allocation::Kind::kConstant:
        addresses[i] = constants[i];
        break;
      case Allocation::Kind::kArena:
        addresses[i] = arena;
        break;
    }
  }
}

}  // namespace kiln::program
