#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// The extremum equal to a select by the order of its own operands. Of integers only: floats would
// lose a NaN and the sign of zero.
Instruction* ByOrder(Instruction* i) {
  const Instruction* p = i->operand(0);
  Instruction *a = i->operand(1), *b = i->operand(2);
  if (p->opcode() != Opcode::kCompare || !IsInt(i)) return nullptr;
  bool straight = p->operand(0) == a && p->operand(1) == b;
  bool crossed = p->operand(0) == b && p->operand(1) == a;
  if (!straight && !crossed) return nullptr;
  switch (p->attributes().DirectionOf(Attr::kDirection)) {
    case Direction::kEq:
      // select(x == y, x, y) => y   (integers)
      return b;
    case Direction::kNe:
      // select(x != y, x, y) => x   (integers)
      return a;
    case Direction::kGe:
    case Direction::kGt:
      // select(x > y, x, y) => max(x, y),  select(x > y, y, x) => min(x, y)   (integers)
      return Make(i, straight ? Opcode::kMaximum : Opcode::kMinimum, {a, b});
    case Direction::kLe:
    case Direction::kLt:
      return Make(i, straight ? Opcode::kMinimum : Opcode::kMaximum, {a, b});
  }
  return nullptr;
}

// A select among preds by a pred of the same shape.
Instruction* OfPreds(Instruction* i) {
  Instruction *p = i->operand(0), *a = i->operand(1), *b = i->operand(2);
  if (!IsPred(i) || !p->shape().SameDimensions(i->shape())) return nullptr;
  bool a_true = a->IsConstantOf(1.0), b_false = b->IsConstantOf(0.0);
  // select(p, true, false) => p,  select(p, false, true) => not p
  if (a_true && b_false) return p;
  if (a->IsConstantOf(0.0) && b->IsConstantOf(1.0)) return Make(i, Opcode::kNot, {p});
  // select(p, true, x) => p or x,  select(p, x, false) => p and x
  if (a_true) return Make(i, Opcode::kOr, {p, b});
  if (b_false) return Make(i, Opcode::kAnd, {p, a});
  return nullptr;
}

}  // namespace

Instruction* SelectRules(Instruction* i) {
  if (i->opcode() != Opcode::kSelect) return nullptr;
  Instruction *p = i->operand(0), *a = i->operand(1), *b = i->operand(2);
  // select(p, x, x) => x
  if (IsSame(a, b)) return a;
  // select(true, x, y) => x,  select(false, x, y) => y
  if (p->IsConstantOf(1.0)) return a;
  if (p->IsConstantOf(0.0)) return b;
  // select(not p, x, y) => select(p, y, x)
  if (p->opcode() == Opcode::kNot) return Make(i, Opcode::kSelect, {p->operand(0), b, a});
  // select(spread(p), x, y) => select(p, x, y)
  if (p->opcode() == Opcode::kBroadcast && p->operand(0)->shape().is_scalar()) {
    return Make(i, Opcode::kSelect, {p->operand(0), a, b});
  }
  // select(p, select(p, x, y), z) => select(p, x, z)
  // select(p, x, select(p, y, z)) => select(p, x, z)
  if (a->opcode() == Opcode::kSelect && a->operand(0) == p) {
    return Make(i, Opcode::kSelect, {p, a->operand(1), b});
  }
  if (b->opcode() == Opcode::kSelect && b->operand(0) == p) {
    return Make(i, Opcode::kSelect, {p, a, b->operand(2)});
  }
  if (Instruction* simpler = OfPreds(i)) return simpler;
  return ByOrder(i);
}

}  // namespace kiln::passes::simplify
