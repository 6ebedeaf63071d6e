// States of random number generators.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/lib/function.h"

namespace kiln::runtime::lib {

// The op rng-get-and-update-state of ops.def.
Result<std::shared_ptr<const Function>> MakeRngGetAndUpdateState(const CallSignature& signature);

}  // namespace kiln::runtime::lib
