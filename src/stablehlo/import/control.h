// Values of outside used by regions that become computations.
#pragma once

#include <span>

#include "stablehlo/import/op.h"

namespace kiln::stablehlo {

// The captured values of a region: all values used from outside, except constants, which are
// copied. Each value once, in the order of first use.
struct Passed {
  std::vector<const mlir::Value*> values;
  Values instructions;
};
Result<Passed> PassedTo(Op& op, std::span<const mlir::Region* const> regions);

// The parts of a value: itself if `count` is 1, otherwise the elements of the tuple.
Values PartsOf(Builder& b, ir::Instruction* value, size_t count);

}  // namespace kiln::stablehlo
