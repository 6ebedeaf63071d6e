// Rules for any commutative and associative op.

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

// Below, * is any op with the property in question.
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
  if (!IsAssociative(i)) return nullptr;
  auto is_own_with_constant = [&](const Instruction* inner) {
    return inner->opcode() == i->opcode() && IsUsedOnce(inner) &&
           IsConstantTerm(inner->operand(1)) && !WillBeConstant(inner->operand(0));
  };
  Shape shape = WithType(i->shape(), i->shape().type());
  // (x * c) * (y * d) => (x * y) * (c * d)   where the inner ops have no other users
  if (is_own_with_constant(x) && is_own_with_constant(y)) {
    return Make(i, i->opcode(),
                {MakeShaped(i, shape, i->opcode(), {x->operand(0), y->operand(0)}),
                 OnConstants(i, i->opcode(), x->operand(1), y->operand(1))});
  }
  // (x * c) * spread(s) => x * spread(s * c)   where x * c has no other users
  for (int64_t k : {0, 1}) {
    Instruction *inner = i->operand(k), *spread = i->operand(1 - k);
    if (!is_own_with_constant(inner) || !IsSpread(spread) || i->shape().num_elements() < 2) {
      continue;
    }
    Instruction* c = ScalarOf(i, inner->operand(1));
    if (!c) continue;
    Instruction* s = spread->operand(0);
    s = MakeShaped(i, s->shape(), i->opcode(), {s, c});
    return Make(i, i->opcode(), {inner->operand(0), Spread(i, shape, s)});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
