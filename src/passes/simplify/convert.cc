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

// Whether the conversion from `a` by `b` to `c` is the conversion from `a` to `c`.
bool MayPassBy(ElementType a, ElementType b, ElementType c) {
  // Narrower integers lose their upper bits in one step or in two.
  if (IsInteger(a) && IsInteger(b) && IsInteger(c) && BitWidth(c) <= BitWidth(b)) return true;
  if (!HoldsAll(a, b)) return false;
  // A float clamps to an integer's range, where an integer wraps.
  return !(IsFloat(b) && IsInteger(c) && IsInteger(a)) || HoldsAll(a, c);
}

// convert(op(convert(x), convert(y))) => op(x, y)   where op is a sum, difference, product,
// negation or bitwise, x and y have the result's type, and the wide op has no other users
// (integers: low bits depend on low bits alone)
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

// convert(select(p, x, y)) => select(p, convert(x), convert(y))   where x and y are constants, and
// the select has no other users
Instruction* OfSelect(Instruction* i) {
  const Instruction* select = i->operand(0);
  if (!IsUsedOnce(select)) return nullptr;
  std::vector<Instruction*> operands = {select->operand(0)};
  for (int64_t k : {1, 2}) {
    if (!IsConstantTerm(select->operand(k))) return nullptr;
    Instruction* scalar = ScalarOf(i, select->operand(k));
    if (!scalar) return nullptr;
    Instruction* converted =
        MakeShaped(i, Shape::Scalar(i->shape().type()), Opcode::kConvert, {scalar});
    operands.push_back(Spread(i, WithType(i->shape(), i->shape().type()), converted));
  }
  return Make(i, Opcode::kSelect, std::move(operands));
}

}  // namespace

Instruction* ConvertRules(Instruction* i) {
  if (i->opcode() != Opcode::kConvert) return nullptr;
  Instruction* x = i->operand(0);
  // convert(x) => x   where x has the type
  if (x->shape().type() == i->shape().type()) return x;
  // convert(convert(x)) => convert(x)   where the type between loses nothing of the result
  if (x->opcode() == Opcode::kConvert &&
      MayPassBy(x->operand(0)->shape().type(), x->shape().type(), i->shape().type())) {
    return Make(i, Opcode::kConvert, {x->operand(0)});
  }
  if (x->opcode() == Opcode::kSelect) return OfSelect(i);
  return OfWideOp(i);
}

}  // namespace kiln::passes::simplify
