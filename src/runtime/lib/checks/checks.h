// Checks of programs: custom calls that fail if a value is not the expected one.
#pragma once

#include "runtime/lib/function.h"

namespace kiln::runtime::lib {

// (actual, expected) to nothing, or to a pred that is true; see tensor/tolerance.h.
Result<std::shared_ptr<const Function>> MakeExpectEq(const CallSignature& signature);
Result<std::shared_ptr<const Function>> MakeExpectAlmostEq(const CallSignature& signature);
Result<std::shared_ptr<const Function>> MakeExpectClose(const CallSignature& signature);
Result<std::shared_ptr<const Function>> MakeEq(const CallSignature& signature);

}  // namespace kiln::runtime::lib
