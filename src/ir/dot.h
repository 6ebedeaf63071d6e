// A module as a Graphviz graph: computations and fusions as clusters.
#pragma once

#include <string>
#include <string_view>

#include "ir/ir.h"

namespace kiln::ir {

std::string ToDot(const Module& module);

// The colour of an op in pictures, as "#rrggbb": one per family of ops.
std::string_view ColourOf(Opcode opcode);

}  // namespace kiln::ir
