// Derivatives of values of a computation by others, added to the computation.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "grad/options.h"
#include "ir/ir.h"

namespace kiln::grad {

// Reverse mode: the sums over `values` of cotangent * d value / d x, for each x of
// `with_respect_to`, of the shape of x; zeros where no value depends on x. An x that depends on
// another one counts in full for both. Cotangents have the shapes of the values; null stands for 1,
// of a real scalar alone. INVALID_ARGUMENT for values of other types than floats and complex
// numbers; UNIMPLEMENTED naming an op without a derivative, where one is needed;
// RESOURCE_EXHAUSTED where calls of calls make more than 4 million instructions.
//
// Instructions are added at the end of the computation. Loops, branches and calls that have to
// return more than they do are replaced (Options::replaced). On failure the computation is as it
// was.
Result<std::vector<ir::Instruction*>> VectorJacobianProduct(
    ir::Computation& computation, std::span<ir::Instruction* const> values,
    std::span<ir::Instruction* const> cotangents, std::span<ir::Instruction* const> with_respect_to,
    const Options& options);

// Forward mode: the tangents of `values`, of their shapes, by the tangents of `with_respect_to`, of
// theirs. Tangents of values that depend on none are zeros. Errors as above.
Result<std::vector<ir::Instruction*>> JacobianVectorProduct(
    ir::Computation& computation, std::span<ir::Instruction* const> values,
    std::span<ir::Instruction* const> with_respect_to, std::span<ir::Instruction* const> tangents,
    const Options& options);

}  // namespace kiln::grad
