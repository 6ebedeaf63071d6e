#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* CompareAndSelect(Instruction* i) {
  if (i->opcode() == Opcode::kSelect) {
    // select(p, x, x) => x
    if (i->operand(1) == i->operand(2)) return i->operand(1);
    // select(true, x, y) => x,  select(false, x, y) => y
    if (i->operand(0)->IsConstantOf(1.0)) return i->operand(1);
    if (i->operand(0)->IsConstantOf(0.0)) return i->operand(2);
    // select(not p, x, y) => select(p, y, x)
    if (i->operand(0)->opcode() == Opcode::kNot) {
      return Make(i, Opcode::kSelect, {i->operand(0)->operand(0), i->operand(2), i->operand(1)});
    }
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
