// How often the loops of a module run that is to be lowered.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/ir.h"

namespace kiln::compiler {

// By while, where it is known. What counts may have become part of fusions.
std::unordered_map<const ir::Instruction*, int64_t> KnownTripCounts(const ir::Module& module);

}  // namespace kiln::compiler
