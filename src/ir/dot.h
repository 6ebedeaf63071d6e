// A module as a Graphviz graph: computations and fusions as clusters.
#pragma once

#include <string>

#include "ir/ir.h"

namespace kiln::ir {

std::string ToDot(const Module& module);

}  // namespace kiln::ir
