#include "random/reducers.h"

#include "base/strings.h"
#include "random/ops.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

std::vector<Instruction*> Parameters(Computation& c, const std::vector<ElementType>& types) {
  std::vector<Instruction*> parameters;
  for (ElementType type : types) {
    const auto number = static_cast<int64_t>(parameters.size());
    parameters.push_back(*c.Add({.opcode = Opcode::kParameter,
                                 .attributes = {{Attr::kParameterNumber, number}},
                                 .shape = Shape::Scalar(type)}));
  }
  return parameters;
}

}  // namespace

Computation* Reducer(ir::Module& module, Opcode opcode, ElementType type) {
  Computation* reducer = module.AddComputation(Cat("reduce_", OpcodeName(opcode)));
  auto p = Parameters(*reducer, {type, type});
  reducer->set_root(*reducer->Add({.opcode = opcode, .operands = {p[0], p[1]}}));
  return reducer;
}

Computation* ArgMax(ir::Module& module, ElementType key, ElementType value) {
  Computation* c = module.AddComputation("argmax");
  auto p = Parameters(*c, {key, value, key, value});
  Instruction* first = *c->Add({.opcode = Opcode::kCompare,
                                .operands = {p[0], p[2]},
                                .attributes = {{Attr::kDirection, Direction::kGt}}});
  // Among NaNs and zeros of both signs, too, there is one that is the largest.
  if (IsNarrowFloat(key)) {
    first->mutable_attributes().Set(Attr::kOrderType, std::string("TOTALORDER"));
  }
  Instruction* k = *c->Add({.opcode = Opcode::kSelect, .operands = {first, p[0], p[2]}});
  Instruction* v = *c->Add({.opcode = Opcode::kSelect, .operands = {first, p[1], p[3]}});
  c->set_root(*c->Add({.opcode = Opcode::kTuple, .operands = {k, v}}));
  return c;
}

}  // namespace kiln::testing
