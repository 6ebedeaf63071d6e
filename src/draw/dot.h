// A module as a Graphviz graph: computations and fusions as clusters.
#pragma once

#include <string>

#include "ir/ir.h"

namespace kiln::draw {

std::string ToDot(const ir::Module& module);

}  // namespace kiln::draw
