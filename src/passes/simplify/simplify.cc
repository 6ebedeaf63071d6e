#include "passes/simplify/simplify.h"

#include "passes/passes.h"

namespace kiln::passes {
namespace simplify {

ir::Instruction* MakeShaped(ir::Instruction* at, const Shape& shape, Opcode opcode,
                            std::vector<ir::Instruction*> operands, Attributes attributes) {
  return at->parent()->Create({.opcode = opcode,
                               .operands = std::move(operands),
                               .attributes = std::move(attributes),
                               .shape = shape,
                               .op_name = at->op_name()},
                              at);
}

ir::Instruction* Make(ir::Instruction* at, Opcode opcode, std::vector<ir::Instruction*> operands,
                      Attributes attributes) {
  return MakeShaped(at, at->shape(), opcode, std::move(operands), std::move(attributes));
}

}  // namespace simplify

Result<bool> SimplifyAlgebra(ir::Module& module, const PassContext& context) {
  constexpr ir::Instruction* (*kFamilies[])(ir::Instruction*) = {
      simplify::Arithmetic,          simplify::CompareAndSelect,
      simplify::ReshapeAndTranspose, simplify::BroadcastRules,
      simplify::SliceConcatenatePad, simplify::ConvertRules,
      simplify::ReduceRules,         simplify::DotRules,
  };
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (auto it = c->instructions().begin(); it != c->instructions().end(); ++it) {
      ir::Instruction* i = it->get();
      if (!i->shape().is_array() || !i->shape().is_static()) continue;
      for (auto family : kFamilies) {
        ir::Instruction* simpler = family(i);
        if (!simpler || simpler == i) continue;
        // What it replaces is left for dead-code elimination, so that the walk stays valid.
        c->ReplaceAllUses(i, simpler);
        changed = true;
        break;
      }
    }
  }
  return changed;
}

}  // namespace kiln::passes
