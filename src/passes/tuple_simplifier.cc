#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// tuple(get-tuple-element(t, 0), ..., get-tuple-element(t, n-1)) => t   where t has n elements
Instruction* WholeTuple(const Instruction& i) {
  if (i.opcode() != Opcode::kTuple || i.operand_count() == 0) return nullptr;
  Instruction* whole = nullptr;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Instruction* element = i.operand(k);
    if (element->opcode() != Opcode::kGetTupleElement ||
        element->attributes().Int(Attr::kIndex) != k || (whole && element->operand(0) != whole)) {
      return nullptr;
    }
    whole = element->operand(0);
  }
  return whole->shape() == i.shape() ? whole : nullptr;
}

bool Simplify(Computation& c) {
  bool changed = false;
  for (auto it = c.instructions().begin(); it != c.instructions().end();) {
    Instruction* i = (it++)->get();
    Instruction* simpler = WholeTuple(*i);
    // get-tuple-element(tuple(x0, ..., xn), k) => xk
    if (i->opcode() == Opcode::kGetTupleElement && i->operand(0)->opcode() == Opcode::kTuple) {
      simpler = i->operand(0)->operand(i->attributes().Int(Attr::kIndex));
    }
    if (!simpler) continue;
    c.ReplaceAllUses(i, simpler);
    if (i->users().empty()) c.Remove(i);
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> SimplifyTuples(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) changed |= Simplify(*c);
  return changed;
}

}  // namespace kiln::passes
