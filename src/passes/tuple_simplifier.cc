#include <algorithm>
#include <vector>

#include "passes/control/computations.h"
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

// opt-barrier(tuple(x, y)) => opt-barrier(tuple(x))   where y is unused
bool DropElements(Instruction* barrier) {
  if (barrier->opcode() != Opcode::kOptBarrier || !barrier->shape().is_tuple() ||
      barrier->operand(0)->opcode() != Opcode::kTuple || barrier->users().empty()) {
    return false;
  }
  std::vector<bool> keep = ElementsRead(barrier);
  if (std::ranges::find(keep, false) == keep.end() || std::ranges::find(keep, true) == keep.end()) {
    return false;
  }
  Computation* c = barrier->parent();
  Instruction* tuple = KeptElements(barrier->operand(0), keep, barrier);
  Instruction* small = c->Create({.opcode = Opcode::kOptBarrier,
                                  .operands = {tuple},
                                  .attributes = barrier->attributes(),
                                  .shape = tuple->shape(),
                                  .op_name = barrier->op_name()},
                                 barrier);
  std::vector<Instruction*> users(barrier->users().begin(), barrier->users().end());
  for (Instruction* user : users) {
    size_t k = static_cast<size_t>(user->attributes().Int(Attr::kIndex));
    int64_t place = std::count(keep.begin(), keep.begin() + static_cast<int64_t>(k), true);
    if (keep[k]) c->ReplaceAllUses(user, ElementOf(small, place, user));
    c->Remove(user);
  }
  c->Remove(barrier);
  return true;
}

bool Simplify(Computation& c) {
  bool changed = false;
  for (auto it = c.instructions().begin(); it != c.instructions().end();) {
    Instruction* i = *it++;
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
  for (const auto& c : module.computations()) {
    std::vector<Instruction*> barriers;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kOptBarrier) barriers.push_back(i);
    }
    for (Instruction* barrier : barriers) changed |= DropElements(barrier);
    changed |= Simplify(*c);
  }
  return changed;
}

}  // namespace kiln::passes
