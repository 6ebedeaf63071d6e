// One graph on several devices.
#pragma once

#include "calls/world.h"

namespace kiln::fuzz {

// Compiles a graph for the evaluator, the CPU and now and then another device, and runs it with the
// same arguments: the results must agree as far as rounding lets them.
void CompareDevices(World& world, GraphState& graph);

}  // namespace kiln::fuzz
