// Products with what belongs to them: how operands are cut out, turned and scaled on their way in,
// and what follows over the rows of the result.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A dot that has `x`, an array whose numbers are small, on its left. Its results are not exact
// where they are floats.
std::vector<ir::Instruction*> RandomProduct(const RandomSource& source, ir::Instruction* x);

}  // namespace kiln::testing
