// Frozen arguments: bound once for many runs, and read by these in the form that is best for the
// target. What is computed from frozen arguments and constants alone, packed operands among it, is
// computed when they are bound, by the steps in Program::binding.
#pragma once

#include <cstddef>
#include <vector>

#include "program/program.h"

namespace kiln::program {

inline bool IsFrozen(const Program& program, size_t argument) {
  return argument < program.frozen.size() && program.frozen[argument];
}

// Arguments that take part in one computation, which can be bound only together.
struct FrozenGroup {
  std::vector<size_t> arguments;     // in order
  std::vector<AllocationId> memory;  // of kind kBound: written by the steps of this group alone
  Steps steps;
};
// The smallest groups of the program's binding steps, in the order of their first steps. Frozen
// arguments that no step reads are in none.
std::vector<FrozenGroup> FrozenGroups(const Program& program);

// By argument: whether it is frozen, and runs read it as it is. Without allocations (REFERENCE)
// they read all.
std::vector<bool> KeptArguments(const Program& program);

}  // namespace kiln::program
