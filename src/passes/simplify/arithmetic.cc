#include <cmath>

#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool IsInt(const Instruction* i) { return IsInteger(i->shape().type()); }

}  // namespace

Instruction* Arithmetic(Instruction* i) {
  auto operand = [&](int64_t k) { return i->operand(k); };
  switch (i->opcode()) {
    case Opcode::kAdd:
      // x + 0 => x   (integers; floats where the zero is -0, since -0 + +0 is +0)
      // 0 + x => x
      for (int64_t k = 0; k < 2; ++k) {
        if (operand(1 - k)->IsConstantOf(IsInt(i) ? 0.0 : -0.0) && !IsPred(i->shape().type())) {
          return operand(k);
        }
      }
      return nullptr;
    case Opcode::kSubtract:
      // x - 0 => x   (floats where the zero is +0)
      if (operand(1)->IsConstantOf(0.0)) return operand(0);
      // x - x => 0   (integers)
      if (IsInt(i) && operand(0) == operand(1)) {
        Instruction* zero = i->parent()->Create(
            {.opcode = Opcode::kConstant,
             .shape = Shape::Scalar(i->shape().type()),
             .literal = std::make_shared<const Literal>(Shape::Scalar(i->shape().type()))},
            i);
        return i->shape().rank() == 0
                   ? zero
                   : Make(i, Opcode::kBroadcast, {zero}, {{Attr::kDimensions, Ints{}}});
      }
      return nullptr;
    case Opcode::kMultiply:
      for (int64_t k = 0; k < 2; ++k) {
        // x * 1 => x,  1 * x => x
        if (operand(1 - k)->IsConstantOf(1.0) && !IsPred(i->shape().type())) return operand(k);
        // x * 0 => 0   (integers)
        if (IsInt(i) && operand(1 - k)->IsConstantOf(0.0)) return operand(1 - k);
      }
      return nullptr;
    case Opcode::kDivide:
      // x / 1 => x
      if (operand(1)->IsConstantOf(1.0)) return operand(0);
      return nullptr;
    case Opcode::kPower:
      // power(x, 1) => x
      if (operand(1)->IsConstantOf(1.0)) return operand(0);
      // power(x, 2) => x * x
      if (operand(1)->IsConstantOf(2.0)) {
        return Make(i, Opcode::kMultiply, {operand(0), operand(0)});
      }
      return nullptr;
    case Opcode::kNegate:
    case Opcode::kNot:
      // negate(negate(x)) => x,  not(not(x)) => x
      if (operand(0)->opcode() == i->opcode()) return operand(0)->operand(0);
      return nullptr;
    case Opcode::kAbs:
      // abs(abs(x)) => abs(x)
      if (operand(0)->opcode() == Opcode::kAbs) return operand(0);
      // abs(negate(x)) => abs(x)   (not unsigned integers, whose absolute value is themselves)
      if (operand(0)->opcode() == Opcode::kNegate && !IsUnsigned(i->shape().type())) {
        return Make(i, Opcode::kAbs, {operand(0)->operand(0)});
      }
      return nullptr;
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      // maximum(x, x) => x,  minimum(x, x) => x,  x and x => x,  x or x => x
      if (operand(0) == operand(1)) return operand(0);
      return nullptr;
    case Opcode::kCopy:
      // copy(copy(x)) => copy(x)
      if (operand(0)->opcode() == Opcode::kCopy) return operand(0);
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
