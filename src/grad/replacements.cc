#include "grad/replacements.h"

#include <algorithm>
#include <ranges>

#include "grad/leaves.h"
#include "ir/analysis/trip_count.h"
#include "ir/instruction_map.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

bool HasTupleElements(const Shape& shape) {
  return std::ranges::any_of(shape.elements(), [](const Shape& e) { return e.is_tuple(); });
}

// Operands and control predecessors before what needs them, and all else as it was.
void Sort(ir::Computation& computation) {
  std::vector<Instruction*> order;
  ir::InstructionSet done(computation), open(computation);
  std::vector<Instruction*> stack;
  for (Instruction* i : computation.instructions()) {
    stack.push_back(i);
    while (!stack.empty()) {
      Instruction* top = stack.back();
      if (done.contains(top)) {
        stack.pop_back();
      } else if (!open.Insert(top)) {
        // All that it needs is there.
        done.Insert(top);
        order.push_back(top);
        stack.pop_back();
      } else {
        for (Instruction* x : std::ranges::reverse_view(top->control_predecessors())) {
          if (!done.contains(x)) stack.push_back(x);
        }
        for (Instruction* x : std::ranges::reverse_view(top->operands())) {
          if (!done.contains(x)) stack.push_back(x);
        }
      }
    }
  }
  computation.Reorder(order);
}

// op's value by the first elements of `now`.
Instruction* ValueOf(ir::Builder& b, const Instruction* op, Instruction* now) {
  std::vector<Instruction*> leaves;
  const int64_t count = std::ssize(LeafShapes(op->shape()));
  for (int64_t k = 0; k < count; ++k) leaves.push_back(b.Element(now, k));
  return ValueOfLeaves(b, op->shape(), leaves);
}

}  // namespace

Result<Instruction*> Replacements::Early::Insert(ir::InstructionSpec& spec, bool is_complete) {
  spec.frontend_attributes = op_->frontend_attributes();
  KILN_ASSIGN_OR_RETURN(Instruction * made, ir::Builder::Insert(spec, is_complete));
  replacements_.early_.push_back(made);
  return made;
}

void Replacements::Add(Instruction* op, Instruction* now) {
  Early early(*this, op);
  pairs_.push_back({op, now, values_[op] = ValueOf(early, op, now)});
}

void Replacements::AddLate(Instruction* op, Instruction* now) {
  ir::Builder late(computation_, nullptr, op->op_name(), ir::Builder::Operands::kTrusted);
  pairs_.push_back({op, now, values_[op] = ValueOf(late, op, now)});
  is_late_ = true;
}

void Replacements::Commit() {
  ir::Computation& c = *computation_;
  for (const auto& [op, now, value] : pairs_) {
    if (op->shape().is_tuple() && !HasTupleElements(op->shape())) {
      const std::vector<Instruction*> users(op->users().begin(), op->users().end());
      for (Instruction* user : users) {
        if (ir::IsElementOf(user, op)) c.ReplaceOperand(user, 0, now);
      }
    }
    c.ReplaceAllUses(op, value);
    // The new op comes before what waits, and behind what it waits for, so there is no cycle.
    const std::vector<Instruction*> before(op->control_predecessors().begin(),
                                           op->control_predecessors().end());
    const std::vector<Instruction*> after(op->control_successors().begin(),
                                          op->control_successors().end());
    for (Instruction* x : before) (void)c.AddControlDependency(x, now);
    for (Instruction* x : after) (void)c.AddControlDependency(now, x);
    c.Remove(op);
  }
  if (is_late_) Sort(c);
}

Instruction* Replacements::Now(Instruction* x) const {
  const auto found = values_.find(x);
  return found == values_.end() ? x : found->second;
}

}  // namespace kiln::grad
