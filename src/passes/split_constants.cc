// constant((a, b)) => tuple(constant(a), constant(b))
#include "passes/passes.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

namespace {

Instruction* Split(Computation& c, const Literal& literal, Instruction* before) {
  if (!literal.shape().is_tuple()) {
    return c.Create({.opcode = Opcode::kConstant,
                     .shape = literal.shape(),
                     .literal = std::make_shared<const Literal>(literal)},
                    before);
  }
  std::vector<Instruction*> elements;
  std::vector<Shape> shapes;
  for (const Literal& element : literal.elements()) {
    elements.push_back(Split(c, element, before));
    shapes.push_back(elements.back()->shape());
  }
  return c.Create({.opcode = Opcode::kTuple,
                   .operands = std::move(elements),
                   .shape = Shape::Tuple(std::move(shapes))},
                  before);
}

}  // namespace

Result<bool> SplitConstants(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    std::vector<Instruction*> tuples;
    for (Instruction* i : c->instructions()) {
      if (i->IsConstant() && i->shape().is_tuple()) tuples.push_back(i);
    }
    for (Instruction* i : tuples) {
      c->ReplaceAllUses(i, Split(*c, i->literal(), i));
      c->Remove(i);
    }
    changed |= !tuples.empty();
  }
  return changed;
}

}  // namespace kiln::passes
