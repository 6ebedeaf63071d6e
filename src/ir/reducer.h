// Reducers: computations that fold two scalars to one by a single op.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// A new computation of two scalars of a type to one, by a commutative op; of the op's name where
// none is given. Fails where the op does not take the type.
Result<Computation*> AddReducer(Module& module, Opcode opcode, ElementType type,
                                std::string_view name = {});

// The commutative op of its two parameters that a computation is, if it is one.
std::optional<Opcode> ReducerOf(const Computation& computation);

// The identity element of a reducer's op, for a type of the op; none if it is unknown. For sums of
// floats it is -0, for maxima the least value or -infinity, for minima the greatest or infinity.
// Complex numbers are ordered by their real parts first.
std::optional<Literal> IdentityOf(Opcode opcode, ElementType type);

}  // namespace kiln::ir
