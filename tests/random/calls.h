// Random modules with calls of functions.
#pragma once

#include <random>
#include <vector>

#include "ir/ir.h"

namespace kiln::testing {

// Moves up to `count` parts of the entry, or of functions moved out before, into functions of their
// own, called at their places. Arguments and results are arrays, the results as a tuple or alone.
void MakeCalls(ir::Module& module, int count, std::mt19937_64& random);

// The entry, and the computations that it reaches by calls alone.
std::vector<ir::Computation*> CalledByEntry(const ir::Module& module);

}  // namespace kiln::testing
