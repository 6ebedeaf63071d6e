#include "passes/simplify/simplify.h"

#include <algorithm>

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

// Rules see arrays of known sizes, and nothing that is dead: replacing that would never end.
bool MayReplace(const ir::Instruction& i) {
  if (i.users().empty() && !i.IsRoot()) return false;
  auto is_static_array = [](const Shape& s) { return s.is_array() && s.is_static(); };
  return is_static_array(i.shape()) &&
         std::ranges::all_of(i.operands(), [&](const ir::Instruction* operand) {
           return is_static_array(operand->shape());
         });
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
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      ir::Instruction* i = (it++)->get();
      if (!simplify::MayReplace(*i)) continue;
      for (auto family : kFamilies) {
        ir::Instruction* simpler = family(i);
        // A layout is part of what a root or a loop's state promises, and no rule's to change.
        if (!simpler || simpler == i || !(simpler->shape() == i->shape())) continue;
        c->ReplaceAllUses(i, simpler);
        if (i->users().empty()) c->Remove(i);
        changed = true;
        break;
      }
    }
  }
  return changed;
}

}  // namespace kiln::passes
