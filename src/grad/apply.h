// Computations of scalars, as in reductions and maps, applied to whole arrays.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "grad/builder.h"

namespace kiln::grad {

// The results of a computation of scalars for arguments of equal dimensions, element by element: of
// one that returns a tuple its elements. An argument may be null; then results that need it are
// null. Fails with UNIMPLEMENTED where the computation has ops that are not elementwise.
std::vector<ir::Instruction*> Apply(Builder& b, const ir::Computation& function,
                                    std::span<ir::Instruction* const> arguments);

// The op by which a reduction, or one of windows, folds a single array, if that is one op.
std::optional<Opcode> FoldOf(const ir::Instruction* op);

// A computation of scalars for a reduction, under construction: `accumulated` and `next` are its
// parameters, one of each type in order.
struct Combination {
  Combination(const Builder& at, std::string_view name, std::span<const ElementType> types);

  ir::Computation* computation;
  Builder b;
  std::vector<ir::Instruction*> accumulated, next;
};

}  // namespace kiln::grad
