// Functions that a few ops of HLO make exactly.
#include <limits>

#include "passes/expand/expand.h"

namespace kiln::passes::expand {

using ir::Instruction;

// The bits of floats of one sign count up with their magnitudes:
// next-after(x, y) => bits(x) + 1 or - 1   by whether it goes away from 0
Result<Instruction*> NextAfter(Builder& b, Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  const int64_t width = BitWidth(x->shape().type());
  const ElementType integer = width == 16   ? ElementType::kS16
                              : width == 32 ? ElementType::kS32
                                            : ElementType::kS64;
  Instruction *zero = b.Number(x, 0), *bits = b.Bits(x, integer), *one = b.Number(bits, 1);
  Instruction* away = b.Compare(Direction::kEq, b.Compare(Direction::kLt, x, y),
                                b.Compare(Direction::kGt, x, zero));
  Instruction* stepped = b.Plus(bits, b.Select(away, one, b.Number(bits, -1)));
  // Beside 0 is the least number of y's sign.
  Instruction* sign = b.Binary(Opcode::kShiftLeft,
                               b.Binary(Opcode::kShiftRightLogical, b.Bits(y, integer),
                                        b.Number(bits, static_cast<double>(width - 1))),
                               b.Number(bits, static_cast<double>(width - 1)));
  stepped = b.Select(b.Compare(Direction::kEq, x, zero), b.Or(sign, one), stepped);
  Instruction* result =
      b.Select(b.Compare(Direction::kEq, x, y), y, b.Bits(stepped, x->shape().type()));
  Instruction* ordered = b.And(b.Compare(Direction::kEq, x, x), b.Compare(Direction::kEq, y, y));
  return b.Select(ordered, result, b.Number(x, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace kiln::passes::expand
