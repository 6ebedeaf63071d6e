#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* EmptyArrays(Instruction* i) {
  if (i->shape().num_elements() != 0) return nullptr;
  switch (i->opcode()) {
    // Given values, and ops that may not end.
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kOptBarrier:
      return nullptr;
    default:
      if (HasTrait(i->opcode(), kSideEffect)) return nullptr;
      break;
  }
  // op(...) => {}   where the result has no elements
  return ir::Builder(i).Constant(i->shape(), std::make_shared<const Literal>(i->shape()));
}

}  // namespace kiln::passes::simplify
