#include "passes/memory/schedule.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool OwnsItsCallees(const Instruction& i) {
  return i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional;
}

void ScheduleComputation(Computation& c) {
  std::vector<Instruction*> order = c.PostOrder();
  // Bytes that the computation of a value needs at its peak, as if nothing were shared.
  std::unordered_map<const Instruction*, int64_t> peak;
  auto by_peak = [&](std::vector<Instruction*> operands) {
    std::stable_sort(operands.begin(), operands.end(), [&](Instruction* a, Instruction* b) {
      return peak[a] - a->shape().byte_size() > peak[b] - b->shape().byte_size();
    });
    return operands;
  };
  for (Instruction* i : order) {
    int64_t held = 0, most = 0;
    for (Instruction* operand : by_peak({i->operands().begin(), i->operands().end()})) {
      most = std::max(most, held + peak[operand]);
      held += operand->shape().byte_size();
    }
    peak[i] = std::max(most, held + i->shape().byte_size());
  }
  std::vector<Instruction*> schedule;
  std::unordered_set<const Instruction*> done;
  struct Visit {
    Instruction* instruction;
    std::vector<Instruction*> operands;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  auto enter = [&](Instruction* i) {
    if (!done.insert(i).second) return;
    stack.push_back({i, by_peak({i->operands().begin(), i->operands().end()})});
  };
  auto visit = [&](Instruction* start) {
    enter(start);
    while (!stack.empty()) {
      if (stack.back().next < stack.back().operands.size()) {
        enter(stack.back().operands[stack.back().next++]);
      } else {
        schedule.push_back(stack.back().instruction);
        stack.pop_back();
      }
    }
  };
  for (Instruction* p : c.parameters()) visit(p);
  visit(c.root());
  for (Instruction* i : order) visit(i);
  c.Reorder(schedule);
}

}  // namespace

Result<bool> FlattenCallGraph(ir::Module& module) {
  std::unordered_set<const Computation*> taken;
  bool changed = false;
  // Callers first: a copy's own callees are copied with it.
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* c = work.back();
    work.pop_back();
    for (const auto& i : c->instructions()) {
      if (!OwnsItsCallees(*i)) continue;
      for (size_t k = 0; k < i->called().size(); ++k) {
        if (!taken.insert(i->called(k)).second) {
          i->set_called(k, module.CloneComputation(*i->called(k), i->called(k)->name()));
          taken.insert(i->called(k));
          changed = true;
        }
        work.push_back(i->called(k));
      }
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

Result<bool> Schedule(ir::Module& module) {
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* c = work.back();
    work.pop_back();
    ScheduleComputation(*c);
    for (const auto& i : c->instructions()) {
      if (OwnsItsCallees(*i)) work.insert(work.end(), i->called().begin(), i->called().end());
    }
  }
  module.set_is_scheduled(true);
  return true;
}

}  // namespace kiln::passes
