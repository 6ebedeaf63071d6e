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

// The value that changes nothing when it is folded with another one by a reducer's op, which takes
// the type; none where no such value is known. Of sums of floats it is -0, of maxima the least
// value or -infinity, of minima the greatest or infinity; complex numbers are ordered by their real
// parts first.
std::optional<Literal> IdentityOf(Opcode opcode, ElementType type);

}  // namespace kiln::ir
