// What follows from an op's being commutative and associative, whichever it is.

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// Whether (x * y) * z has the bits of x * (y * z). Sums and products of floats round.
bool IsAssociative(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return true;
    case Opcode::kAdd:
    case Opcode::kMultiply:
      return IsInt(i) || IsPred(i);
    default:
      return false;
  }
}

}  // namespace

// Below, * is any op that has the property.
Instruction* Association(Instruction* i) {
  if (!HasTrait(i->opcode(), kCommutative) || i->operand_count() != 2) return nullptr;
  Instruction *x = i->operand(0), *y = i->operand(1);
  // c * x => x * c   (form)
  if (IsConstantTerm(x) && !WillBeConstant(y)) return Make(i, i->opcode(), {y, x});
  if (IsIdempotent(i->opcode(), i->shape().type())) {
    // x * x => x
    if (IsSame(x, y)) return x;
    // x * (x * y) => x * y,  (x * y) * y => x * y
    for (int64_t k = 0; k < 2; ++k) {
      Instruction *inner = i->operand(k), *other = i->operand(1 - k);
      if (inner->opcode() == i->opcode() &&
          (IsSame(inner->operand(0), other) || IsSame(inner->operand(1), other))) {
        return inner;
      }
    }
  }
  // (x * c) * d => x * (c * d)
  if (IsAssociative(i) && IsConstantTerm(y) && x->opcode() == i->opcode() &&
      IsConstantTerm(x->operand(1)) && !WillBeConstant(x->operand(0))) {
    return Make(i, i->opcode(), {x->operand(0), OnConstants(i, i->opcode(), x->operand(1), y)});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
