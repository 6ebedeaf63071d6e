#include "passes/call_layouts.h"

#include <utility>
#include <vector>

#include "passes/control/computations.h"

namespace kiln::passes {

using ir::Instruction;

Instruction* WithLayouts(Instruction* value, const Shape& shape, Instruction* at) {
  if (value->shape() == shape) return value;
  if (shape.is_array()) {
    return at->parent()->Create({.opcode = Opcode::kCopy, .operands = {value}, .shape = shape}, at);
  }
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    elements.push_back(
        WithLayouts(ElementOf(value, static_cast<int64_t>(k), at), shape.elements()[k], at));
  }
  return MakeTuple(at->parent(), std::move(elements), at);
}

void SetCallLayouts(Instruction* call, std::span<const Shape> operands, const Shape& result) {
  std::vector<Instruction*> in_layouts;
  for (size_t o = 0; o < operands.size(); ++o) {
    in_layouts.push_back(WithLayouts(call->operand(static_cast<int64_t>(o)), operands[o], call));
  }
  ir::InstructionSpec spec = ir::CopySpec(*call, std::move(in_layouts));
  spec.shape = result;
  Instruction* made = call->parent()->Create(std::move(spec), call);
  call->parent()->ReplaceAllUses(call, WithLayouts(made, call->shape(), call));
  call->parent()->Remove(call);
}

}  // namespace kiln::passes
