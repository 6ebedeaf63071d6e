#include "ir/computation_copies.h"

#include <utility>
#include <vector>

#include "ir/instruction_map.h"

namespace kiln::ir {

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

Computation* ComputationCopies::Add(const Computation& computation, std::string name) {
  if (!copies_.contains(&computation)) AddWithCallees(computation, name);
  return Of(&computation);
}

void ComputationCopies::AddCallees(const Instruction& caller) {
  for (const Computation* callee : caller.called()) Add(*callee, callee->name());
}

// Without recursion: calls may be deep.
void ComputationCopies::AddWithCallees(const Computation& computation, const std::string& name) {
  std::vector<Visit> open;
  open.emplace_back(&computation);
  while (!open.empty()) {
    Visit& visit = open.back();
    if (visit.next < visit.callees.size()) {
      const Computation* callee = visit.callees[visit.next++];
      if (!copies_.contains(callee)) open.emplace_back(callee);
      continue;
    }
    Copy(*visit.computation, open.size() == 1 ? name : visit.computation->name());
    open.pop_back();
  }
}

void ComputationCopies::Copy(const Computation& original, const std::string& name) {
  Computation* copy = to_.AddComputation(name);
  copies_.emplace(&original, copy);
  InstructionMap<Instruction*> made(original);
  for (const Instruction* i : original.instructions()) {
    std::vector<Instruction*> operands;
    operands.reserve(i->operands().size());
    for (const Instruction* operand : i->operands()) operands.push_back(made.at(operand));
    InstructionSpec spec = CopySpec(*i, std::move(operands));
    for (Computation*& callee : spec.called) callee = copies_.at(callee);
    Instruction* instruction = made[i] = copy->Create(std::move(spec));
    // The order is the original's, so there is no cycle.
    for (const Instruction* before : i->control_predecessors()) {
      (void)copy->AddControlDependency(made.at(before), instruction);
    }
    if (mapping_) mapping_->emplace(i, instruction);
  }
  if (original.root()) copy->set_root(made.at(original.root()));
}

}  // namespace kiln::ir
