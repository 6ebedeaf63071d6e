// Functions outside generated code, called as programs call them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/host_call.h"
#include "runtime/thread_pool.h"
#include "tensor/literal.h"

namespace kiln::testing {

// The value of the instruction of HLO text `call`, of operands of these values, by the library's
// function. Its arrays end where memory does that cannot be touched, and scratch holds NaNs.
Result<Literal> CallLibrary(const ir::Instruction& call, const std::vector<Literal>& operands,
                            runtime::ThreadPool& pool);
// The same with a result in the memory of operand number `in_place`.
Result<Literal> CallLibraryInPlace(const ir::Instruction& call,
                                   const std::vector<Literal>& operands, size_t in_place,
                                   runtime::ThreadPool& pool);

// Seeded values of any float or complex type, from a normal distribution.
Literal NormalLiteral(const Shape& shape, uint64_t seed);

// |actual - expected| / |expected|, as norms over all elements; infinite where one is no number and
// the other is one, or where an element is that.
double RelativeError(const Literal& expected, const Literal& actual);

}  // namespace kiln::testing
