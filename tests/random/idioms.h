// Small groups of ops that passes look for, and that ops picked one by one would hardly ever form.
#pragma once

#include <vector>

#include "random/maker.h"

namespace kiln::testing {

// What an idiom that begins at `x` results in: arrays, none where x has no such idiom. Where
// `exact` is set no rewrite of it may change a bit.
std::vector<ir::Instruction*> RandomIdiom(const RandomSource& source, ir::Instruction* x,
                                          bool exact);

}  // namespace kiln::testing
