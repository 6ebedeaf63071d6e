// Makes HLO of StableHLO: a tree as the readers make it becomes an ir::Module.
//
// The operations of the dialects stablehlo and chlo, and what of func, builtin, check and
// interpreter programs are written with, become instructions of the same meaning; what HLO has no
// op for is written out. In particular:
//   - Functions are computations, called by `call`. One result is that value, several are a tuple,
//     none is an empty one. The entry's parameters are those of the function, as they are.
//   - Regions are computations. What those of `if`, `case` and `while` use of values outside is
//     passed to them; those of reductions and the like may use what is known when importing.
//   - Sizes that are not known (`?`) are found by inference, from the shapes that the options give
//     for the entry's arguments; operands that say shapes are evaluated for that. Bounded sizes
//     stay what they are.
//   - Values of quantised types are held as their integers, and computed with as floats; products
//     as integers.
//   - Futures are values that are there; what async_start runs is in the place of it.
//   - Checks are custom calls of the target "check.expect_eq" and so on, see checks.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "ir/ir.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

struct ImportOptions {
  // The name of the function that is run; "": @main, or else the only public function.
  std::string entry;
  // The shapes of the entry's arguments, which must agree with what its type says; none: those of
  // its type, in which all sizes must be known then, or bounded.
  std::vector<Shape> arguments;
  // Ends importing with CANCELLED or DEADLINE_EXCEEDED.
  Interrupt interrupt;
};

// Errors begin with the operation's place, "line 3, column 7: 'stablehlo.add': ". What is not
// implemented is UNIMPLEMENTED, named. Depth is bounded, and so is what is evaluated on the way.
Result<std::unique_ptr<ir::Module>> Import(const mlir::Module& tree,
                                           const ImportOptions& options = {});

}  // namespace kiln::stablehlo
