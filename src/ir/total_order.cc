#include "ir/total_order.h"

namespace kiln::ir {
namespace {

ElementType SignedOfWidth(int64_t bytes) {
  switch (bytes) {
    case 1:
      return ElementType::kS8;
    case 2:
      return ElementType::kS16;
    case 4:
      return ElementType::kS32;
    default:
      return ElementType::kS64;
  }
}

}  // namespace

Instruction* TotalOrderKey(Computation& c, Instruction* x) {
  ElementType type = SignedOfWidth(ByteWidth(x->shape().type()));
  Shape shape(type, x->shape().dimensions());
  auto make = [&](Opcode opcode, std::vector<Instruction*> operands) {
    return c.Create({.opcode = opcode, .operands = std::move(operands), .shape = shape});
  };
  auto number = [&](int64_t value) {
    auto literal = std::make_shared<Literal>(Shape::Scalar(type));
    std::memcpy(literal->data(), &value, static_cast<size_t>(ByteWidth(type)));
    Instruction* n = c.Create(
        {.opcode = Opcode::kConstant, .shape = literal->shape(), .literal = std::move(literal)});
    if (shape.rank() == 0) return n;
    return c.Create({.opcode = Opcode::kBroadcast,
                     .operands = {n},
                     .attributes = {{Attr::kDimensions, Ints()}},
                     .shape = shape});
  };
  Instruction* bits = make(Opcode::kBitcastConvert, {x});
  Instruction* signs = make(Opcode::kShiftRightArithmetic, {bits, number(8 * ByteWidth(type) - 1)});
  Instruction* rest = make(Opcode::kShiftRightLogical, {signs, number(1)});
  return make(Opcode::kXor, {bits, rest});
}

}  // namespace kiln::ir
