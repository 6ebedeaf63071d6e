#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* DotRules(Instruction* i) {
  if (i->opcode() != Opcode::kDot) return nullptr;
  // dot(x, y) => 0   where the contracting dimensions are empty of elements
  int64_t terms = 1;
  for (int64_t d : i->attributes().IntsOf(Attr::kLhsContractingDims)) {
    terms *= i->operand(0)->shape().dim(d);
  }
  if (terms == 0) {
    Shape scalar = Shape::Scalar(i->shape().type());
    Instruction* zero = i->parent()->Create({.opcode = Opcode::kConstant,
                                             .shape = scalar,
                                             .literal = std::make_shared<const Literal>(scalar)},
                                            i);
    if (i->shape().rank() == 0) return zero;
    return Make(i, Opcode::kBroadcast, {zero}, {{Attr::kDimensions, Ints{}}});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
