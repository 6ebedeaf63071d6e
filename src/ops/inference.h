// Shape inference: the result shape of an op from its operands, attributes and called computations,
// and every check that does not need the values. Works on symbols and bounds as on constants.
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
  // What the operands do not determine (ops.def's @type, @dims, @shape), or null. An op that
  // determines its shape wholly ignores it: comparing is the verifier's job.
  const Shape* declared = nullptr;
  std::span<const ProgramShape> called;
};

// Fails with INVALID_ARGUMENT, naming the op, the operand's shapes and what was expected. Layouts
// of operands do not matter, and results have the default one, except where the result is memory
// that another value has already: tuples, their elements, and the results of computations keep
// theirs.
Result<Shape> InferShape(const InferenceInput& input);

}  // namespace kiln
