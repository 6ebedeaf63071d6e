// Where a run finds a program's memory.
#pragma once

#include <cstddef>
#include <span>

#include "program/program.h"

namespace kiln::program {

// Puts the addresses of arguments, results and the arena into `addresses`, by allocation. Those of
// constants stay what they are.
template <typename Address>
void BindAllocations(const Program& program, std::span<const void* const> arguments,
                     std::span<void* const> results, std::byte* arena,
                     std::span<Address*> addresses) {
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
        break;
      case Allocation::Kind::kArena:
        addresses[i] = arena;
        break;
    }
  }
}

}  // namespace kiln::program
