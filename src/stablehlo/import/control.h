// What regions that are computations of their own use of values outside.
#pragma once

#include <span>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// What a region's computation is given of outside: all that it uses but constants, which it has
// itself. Each value once, in the order of their first use.
struct Passed {
  std::vector<const mlir::Value*> values;
  Values instructions;
};
Result<Passed> PassedTo(Op& op, std::span<const mlir::Region* const> regions);

// The parts of a value that is one of `count`, or a tuple of them.
Values PartsOf(Builder& b, ir::Instruction* value, size_t count);

}  // namespace kiln::stablehlo
