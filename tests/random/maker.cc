#include "random/maker.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace kiln::testing {

using ir::Computation;
using ir::Instruction;

int64_t RandomMaker::Divisor(int64_t n) const {
  int64_t d = Pick(1, std::min<int64_t>(n, 12));
  while (n % d != 0) --d;
  return d;
}

Instruction* RandomMaker::AddTo(Computation& c, ir::InstructionSpec spec) {
  auto made = c.Add(std::move(spec));
  if (!made.ok()) {
    std::cerr << "random module: " << made.status().ToString() << "\n";
    std::abort();
  }
  return *made;
}

Instruction* RandomMaker::ParameterOf(Computation& c, const Shape& shape) {
  const auto number = static_cast<int64_t>(c.parameters().size());
  return AddTo(c, {.opcode = Opcode::kParameter,
                   .attributes = {{Attr::kParameterNumber, number}},
                   .shape = Shape(shape.type(), shape.dimensions())});
}

Instruction* RandomMaker::Scalar(ElementType type, double value) const {
  return Add({.opcode = Opcode::kConstant,
              .shape = Shape::Scalar(type),
              .literal = std::make_shared<const Literal>(Literal::ScalarOf(type, value))});
}

Instruction* RandomMaker::Full(const Shape& shape, double value) const {
  return Add({.opcode = Opcode::kBroadcast,
              .operands = {Scalar(shape.type(), value)},
              .attributes = {{Attr::kDimensions, Ints{}}},
              .shape = Shape(shape.type(), shape.dimensions())});
}

Instruction* RandomMaker::Element(Instruction* tuple, int64_t index) const {
  return Add({.opcode = Opcode::kGetTupleElement,
              .operands = {tuple},
              .attributes = {{Attr::kIndex, index}}});
}

}  // namespace kiln::testing
