// Shape inference: the result shape of an op from its operands, attributes and called computations,
// and every check that does not need values. Symbols and bounds are treated like constants.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ops/attributes.h"
#include "ops/op.h"
#include "tensor/shape.h"

namespace kiln {

// The signature of a called computation.
struct ProgramShape {
  std::vector<Shape> parameters;
  Shape result;
};

struct InferenceInput {
  Opcode opcode;
  std::span<const Shape* const> operands;
  const Attributes& attributes;
  // The parts of the shape not determined by operands (ops.def's @type, @dims, @shape), or null.
  // Ignored by ops that determine their shape completely: the verifier compares it.
  const Shape* declared = nullptr;
  std::span<const ProgramShape> called;
};

// Fails with INVALID_ARGUMENT, naming the op, the operands' shapes and the expectation. Layouts of
// operands are ignored, and results have the default one, except for results in existing memory:
// tuples, their elements, and the results of computations keep theirs.
Result<Shape> InferShape(const InferenceInput& input);

}  // namespace kiln
