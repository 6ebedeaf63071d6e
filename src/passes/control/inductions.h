// What counts in loops whose computations have been fused.
#pragma once

#include <unordered_map>

#include "ir/analysis/trip_count.h"
#include "ir/ir.h"

namespace kiln::passes {

// By while, for loops whose state is a tuple and whose conditions have no effects. What counts may
// have become part of fusions.
std::unordered_map<const ir::Instruction*, ir::Induction> InductionsOf(const ir::Module& module);

}  // namespace kiln::passes
