// Decompositions and solutions of dense matrices.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "runtime/lib/function.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// The ops cholesky and triangular-solve of ops.def. f16 and bf16 are computed as f32, and rounded
// at the end.
Result<std::shared_ptr<const Function>> MakeCholesky(const CallSignature& signature);
Result<int64_t> CholeskyScratchBytes(const CallSignature& signature);
Result<std::shared_ptr<const Function>> MakeTriangularSolve(const CallSignature& signature);
Result<int64_t> TriangularSolveScratchBytes(const CallSignature& signature);

}  // namespace kiln::runtime::lib
