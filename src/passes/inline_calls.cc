#include "passes/control/computations.h"
#include "passes/growth.h"
#include "passes/passes.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

// call(f, x) => f(x)
Result<bool> InlineCalls(ir::Module& module, const PassContext& context) {
  // This is the first pass that copies; loops and branches get copies of their own in the end.
  KILN_RETURN_IF_ERROR(CheckCopies(module, context));
  bool changed = false;
  // Callees first: copied computations have no calls any more.
  for (Computation* c : module.CalleesFirst()) {
    std::vector<Instruction*> calls;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kCall) calls.push_back(i);
    }
    for (Instruction* call : calls) {
      c->ReplaceAllUses(call, CopyBody(call, *call->called(0), call->operands()));
      c->Remove(call);
    }
    changed |= !calls.empty();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
