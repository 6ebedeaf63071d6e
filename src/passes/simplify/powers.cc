#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

Instruction* Power(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // power(x, 0) => 1,  power(1, y) => 1   (NaN to the power of 0 is 1, as in C)
  if (y->IsConstantOf(0.0) || y->IsConstantOf(-0.0) || x->IsConstantOf(1.0)) {
    return SplatNumber(i, i->shape(), 1);
  }
  // power(x, 1) => x
  if (y->IsConstantOf(1.0)) return x;
  // power(x, 2) => x * x   (rounded once)
  if (y->IsConstantOf(2.0)) return Make(i, Opcode::kMultiply, {x, x});
  // power(x, 3) => x * x * x   (floats: rounded twice, by half an ULP each)
  if (y->IsConstantOf(3.0)) {
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kMultiply, {MakeShaped(i, shape, Opcode::kMultiply, {x, x}), x});
  }
  // power(x, -1) => 1 / x   (floats; rounded once. power(x, -2) is not 1 / (x * x), which overflows
  // where the result is still above 0, nor is power(x, 0.5) sqrt(x): they differ at -0 and -inf.)
  if (IsFloat(i) && y->IsConstantOf(-1.0)) {
    Shape shape = WithType(i->shape(), i->shape().type());
    return Make(i, Opcode::kDivide, {SplatNumber(i, shape, 1), x});
  }
  return nullptr;
}

Instruction* Remainder(Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  // (x % y) % y => x % y   (what is left is smaller than y; x itself where an integer y is 0)
  if (x->opcode() == Opcode::kRemainder && IsSame(x->operand(1), y)) return x;
  if (!IsInt(i)) return nullptr;
  // x % 1 => 0,  x % -1 => 0,  x % x => 0,  0 % x => 0   (integers: 0 % 0 is 0)
  if (y->IsConstantOf(1.0) || y->IsConstantOf(-1.0) || IsSame(x, y) || x->IsConstantOf(0.0)) {
    return SplatNumber(i, i->shape(), 0);
  }
  return nullptr;
}

}  // namespace

Instruction* PowersAndRemainders(Instruction* i) {
  if (i->opcode() == Opcode::kPower) return Power(i);
  if (i->opcode() == Opcode::kRemainder) return Remainder(i);
  return nullptr;
}

}  // namespace kiln::passes::simplify
