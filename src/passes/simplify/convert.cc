#include <limits>

#include "passes/simplify/facts.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// The bits of a float's mantissa, with the hidden one.
int64_t MantissaOf(ElementType type) {
  return VisitKernelType(
      type, [](auto zero) -> int64_t { return std::numeric_limits<decltype(zero)>::digits; });
}

}  // namespace

bool HoldsAll(ElementType small, ElementType large) {
  if (small == large) return true;
  if (!IsKernelType(small) || !IsKernelType(large)) return false;
  int64_t digits = BitWidth(small);
  switch (CategoryOf(large)) {
    case TypeCategory::kBoolean:
    case TypeCategory::kComplex:
      return false;
    case TypeCategory::kSigned:
      if (IsPred(small)) return true;
      return (IsSigned(small) && digits < BitWidth(large)) ||
             (IsUnsigned(small) && digits < BitWidth(large));
    case TypeCategory::kUnsigned:
      if (IsPred(small)) return true;
      return IsUnsigned(small) && digits < BitWidth(large);
    case TypeCategory::kFloat: {
      if (IsPred(small)) return true;
      // Neither of f16 and bf16 holds the other.
      if (IsFloat(small)) return digits < BitWidth(large);
      int64_t mantissa = MantissaOf(large);
      return IsInteger(small) && digits - (IsSigned(small) ? 1 : 0) <= mantissa;
    }
  }
  return false;
}

namespace {

// Whether from `a` to `b` to `c` is from `a` to `c`.
bool MayPassBy(ElementType a, ElementType b, ElementType c) {
  // Integers that get narrower lose their upper bits, on one way or on another.
  if (IsInteger(a) && IsInteger(b) && IsInteger(c) && BitWidth(c) <= BitWidth(b)) return true;
  if (!HoldsAll(a, b)) return false;
  // A float clamps to an integer's range, where an integer wraps.
  return !(IsFloat(b) && IsInteger(c) && IsInteger(a)) || HoldsAll(a, c);
}

// convert(op(convert(x), convert(y))) => op(x, y)   for sums, differences, products, negatives and
// bits of integers of the result's type, computed in a wider one where it has no other users: their
// lower bits depend on lower bits alone
Instruction* OfWideOp(Instruction* i) {
  const Instruction* op = i->operand(0);
  switch (op->opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kNegate:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
      break;
    default:
      return nullptr;
  }
  if (!IsInt(i) || !IsInt(op) || !IsUsedOnce(op) ||
      BitWidth(i->shape().type()) > BitWidth(op->shape().type())) {
    return nullptr;
  }
  std::vector<Instruction*> operands;
  for (const Instruction* x : op->operands()) {
    if (x->opcode() != Opcode::kConvert || x->operand(0)->shape().type() != i->shape().type()) {
      return nullptr;
    }
    operands.push_back(x->operand(0));
  }
  return Make(i, op->opcode(), std::move(operands));
}

}  // namespace

Instruction* ConvertRules(Instruction* i) {
  if (i->opcode() != Opcode::kConvert) return nullptr;
  Instruction* x = i->operand(0);
  // convert(x) => x   where the type is x's already
  if (x->shape().type() == i->shape().type()) return x;
  // convert(convert(x)) => convert(x)   where the first one loses nothing that the second one keeps
  if (x->opcode() == Opcode::kConvert &&
      MayPassBy(x->operand(0)->shape().type(), x->shape().type(), i->shape().type())) {
    return Make(i, Opcode::kConvert, {x->operand(0)});
  }
  return OfWideOp(i);
}

}  // namespace kiln::passes::simplify
