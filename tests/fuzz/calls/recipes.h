// Arguments with which builder functions mostly succeed.
#pragma once

#include "calls/world.h"

namespace kiln::fuzz {

// Makes operands in the graph where it has none that fit. Empty where that cannot be, as of ops of
// several processes in a graph that is to be compiled.
Contents MakeContents(World& world, GraphState& graph, const Function& function);

}  // namespace kiln::fuzz
