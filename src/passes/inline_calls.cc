#include <unordered_map>

#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Copies the callee's instructions to before the call, and puts its root in the call's place.
void Inline(Computation& caller, Instruction* call) {
  const Computation& callee = *call->called(0);
  std::unordered_map<const Instruction*, Instruction*> map;
  for (size_t i = 0; i < callee.parameters().size(); ++i) {
    map[callee.parameter(i)] = call->operand(i);
  }
  for (const auto& i : callee.instructions()) {
    if (i->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(map.at(operand));
    map[i.get()] = caller.Create(ir::CopySpec(*i, std::move(operands)), call);
  }
  caller.ReplaceAllUses(call, map.at(callee.root()));
  caller.Remove(call);
}

}  // namespace

Result<bool> InlineCalls(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callees first: what is copied has no calls in it any more.
  for (Computation* c : module.CalleesFirst()) {
    std::vector<Instruction*> calls;
    for (const auto& i : c->instructions()) {
      if (i->opcode() == Opcode::kCall) calls.push_back(i.get());
    }
    for (Instruction* call : calls) Inline(*c, call);
    changed |= !calls.empty();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
