// How large modules may become.
#pragma once

#include "base/status.h"
#include "passes/pass.h"

namespace kiln::passes {

// Fails with RESOURCE_EXHAUSTED where a module would have more instructions than the context allows
// once each caller of a computation has a copy of it. Tells so without a copy.
Status CheckCopies(const ir::Module& module, const PassContext& context);

// The same for a computation as it is, for passes that add much per instruction. Also looks at the
// interrupt.
Status CheckGrowth(const ir::Computation& computation, const PassContext& context);

}  // namespace kiln::passes
