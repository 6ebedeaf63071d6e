#include "session/computation_copies.h"

#include <utility>
#include <vector>

namespace kiln::session {

using ir::Computation;
using ir::Instruction;

namespace {

// A computation whose callees are being copied.
struct Visit {
  explicit Visit(const Computation* c) : computation(c) {
    if (!c->MayCall()) return;
    for (const Instruction* i : c->instructions()) {
      callees.insert(callees.end(), i->called().begin(), i->called().end());
    }
  }

  const Computation* computation;
  std::vector<const Computation*> callees;
  size_t next = 0;
};

}  // namespace

void ComputationCopies::Add(const Instruction& caller) {
  std::vector<Visit> open;
  for (const Computation* callee : caller.called()) {
    if (!copies_.contains(callee)) open.emplace_back(callee);
    while (!open.empty()) {
      Visit& visit = open.back();
      if (visit.next < visit.callees.size()) {
        const Computation* inner = visit.callees[visit.next++];
        if (!copies_.contains(inner)) open.emplace_back(inner);
        continue;
      }
      Copy(*visit.computation);
      open.pop_back();
    }
  }
}

void ComputationCopies::Copy(const Computation& original) {
  Computation* copy = to_.AddComputation(original.name());
  copies_.emplace(&original, copy);
  std::unordered_map<const Instruction*, Instruction*> made;
  for (const Instruction* i : original.instructions()) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(made.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    for (Computation*& callee : spec.called) callee = copies_.at(callee);
    made[i] = copy->Create(std::move(spec));
    for (const Instruction* before : i->control_predecessors()) {
      // The order is the original's, so there is no cycle.
      (void)copy->AddControlDependency(made.at(before), made.at(i));
    }
  }
  copy->set_root(made.at(original.root()));
}

}  // namespace kiln::session
