// Unary ops of the sign, of the integer part and of finiteness; copies.

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

Instruction* Abs(Instruction* i) {
  Instruction* x = i->operand(0);
  // |x| => x   where x is not negative
  if (IsNonNegative(x)) return x;
  // ||x|| => |x|   (also of the least integer)
  if (x->opcode() == Opcode::kAbs) return x;
  // |-x| => |x|
  if (x->opcode() == Opcode::kNegate) return Make(i, Opcode::kAbs, {x->operand(0)});
  return nullptr;
}

}  // namespace

Instruction* SignsAndRounding(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kAbs:
      return Abs(i);
    case Opcode::kSign:
      // sign(sign(x)) => sign(x)
      if (i->operand(0)->opcode() == Opcode::kSign) return i->operand(0);
      return nullptr;
    case Opcode::kCeil:
    case Opcode::kFloor:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
      // floor(x) => x   where x is integral   (and the other roundings; -0 and infinities stay)
      if (IsIntegral(i->operand(0))) return i->operand(0);
      return nullptr;
    case Opcode::kIsFinite: {
      Instruction* x = i->operand(0);
      // is-finite(x) => true   where x is finite
      if (IsFinite(x)) return SplatNumber(i, i->shape(), 1);
      // is-finite(-x) => is-finite(x),  is-finite(|x|) => is-finite(x)
      if (x->opcode() == Opcode::kNegate || x->opcode() == Opcode::kAbs) {
        return Make(i, Opcode::kIsFinite, {x->operand(0)});
      }
      return nullptr;
    }
    case Opcode::kCopy:
      // copy(x) => x   where the layouts are equal
      // copy(copy(x)) => copy(x)   where the layouts differ
      if (i->operand(0)->shape() == i->shape()) return i->operand(0);
      if (i->operand(0)->opcode() == Opcode::kCopy) {
        return Make(i, Opcode::kCopy, {i->operand(0)->operand(0)});
      }
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
