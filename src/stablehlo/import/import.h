// Makes HLO from StableHLO: an ir::Module from the readers' tree.
//
// The operations of stablehlo and chlo, and those of func, builtin, check and interpreter used by
// programs, become instructions of the same meaning. Operations without an op in HLO become several
// instructions. In particular:
//   - Functions are computations, called by `call`. One result is the value, several are a tuple,
//     none is an empty tuple. The entry's parameters are the function's.
//   - Regions are computations. Outside values are passed to the regions of `if`, `case` and
//     `while`; regions of reductions and the like may use only values known at import.
//   - Unknown sizes (`?`) are inferred from the shapes of the entry's arguments in the options;
//     shape operands are evaluated for this. Bounded sizes stay bounded.
//   - Values of quantised types are stored as their integers, and computed as floats; products as
//     integers.
//   - Futures are present values: the work of async_start is done in its place.
//   - Checks are custom calls with targets such as "check.expect_eq", see interp/harness.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "ir/ir.h"
#include "stablehlo/import/entry_attributes.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

struct ImportOptions {
  // The name of the function that is run; "": @main, or else the only public function.
  std::string entry;
  // The shapes of the entry's arguments, which must agree with its type. None: the type's own
  // shapes, which must then have known or bounded sizes only.
  std::vector<Shape> arguments;
  // Unless null, receives the attributes of the entry's arguments and results.
  EntryAttributes* entry_attributes = nullptr;
  // Ends importing with CANCELLED or DEADLINE_EXCEEDED.
  Interrupt interrupt;
};

// Errors begin with the operation's place, "line 3, column 7: 'stablehlo.add': ". UNIMPLEMENTED
// names the missing feature. Depth is bounded, and so is the evaluation of operands.
Result<std::unique_ptr<ir::Module>> Import(const mlir::Module& tree,
                                           const ImportOptions& options = {});

}  // namespace kiln::stablehlo
