#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* ConvertRules(Instruction* i) {
  if (i->opcode() != Opcode::kConvert) return nullptr;
  // convert(x) => x   where the type is x's already
  if (i->operand(0)->shape().type() == i->shape().type()) return i->operand(0);
  return nullptr;
}

}  // namespace kiln::passes::simplify
