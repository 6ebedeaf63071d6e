// x > y => max(x, y) > y,  x <= y => max(x, y) <= y   where the maximum is there, and x has no
// other uses
// x < y => min(x, y) < y,  x >= y => min(x, y) >= y   likewise, with the minimum
//
// The algebraic simplifier does the opposite, which is simpler. Here, before fusion, x becomes an
// intermediate value of one kernel, instead of an array beside the extremum: of a layer with
// rectified activations, memory keeps the activations, and no sums for the gradient's comparison.
// For NaNs both sides of a rule are false.
#include <algorithm>
#include <vector>

#include "passes/passes.h"
#include "passes/simplify/terms.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

namespace {

// Whether x compares with y as the extremum of x and y does.
bool Agrees(Direction direction, bool is_max) {
  switch (direction) {
    case Direction::kGt:
    case Direction::kLe:
      return is_max;
    case Direction::kLt:
    case Direction::kGe:
      return !is_max;
    case Direction::kEq:
    case Direction::kNe:
      return false;
  }
  return false;
}

// The side of x, where `user` is a comparison of x with y that a rule is for; otherwise -1.
int64_t SideOf(const Instruction& user, const Instruction* x, const Instruction* y, bool is_max) {
  if (user.opcode() != Opcode::kCompare || user.attributes().Has(Attr::kOrderType)) return -1;
  const Direction direction = user.attributes().DirectionOf(Attr::kDirection);
  for (int64_t side : {0, 1}) {
    if (user.operand(side) != x || user.operand(1 - side) == x) continue;
    if (!simplify::IsSame(user.operand(1 - side), y)) continue;
    if (Agrees(side == 0 ? direction : Flipped(direction), is_max)) return side;
  }
  return -1;
}

// Takes the comparisons from x, an operand of the extremum, if it has no other users.
bool TakeComparisons(Computation& c, Instruction* extremum, const Instruction* x,
                     const Instruction* y) {
  if (x->opcode() == Opcode::kParameter || x->IsConstant() || x->IsRoot() || x == y) return false;
  const bool is_max = extremum->opcode() == Opcode::kMaximum;
  const std::vector<Instruction*> users(x->users().begin(), x->users().end());
  auto is_taken = [&](const Instruction* user) {
    return user == extremum || SideOf(*user, x, y, is_max) >= 0;
  };
  if (users.size() < 2 || !std::ranges::all_of(users, is_taken)) return false;
  for (Instruction* user : users) {
    if (user != extremum) c.ReplaceOperand(user, SideOf(*user, x, y, is_max), extremum);
  }
  return true;
}

}  // namespace

Result<bool> CompareExtrema(ir::Module& module, const PassContext&) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    bool changed_here = false;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kMaximum && i->opcode() != Opcode::kMinimum) continue;
      if (i->shape().is_scalar() || !IsKernelType(i->shape().type())) continue;
      changed_here |= TakeComparisons(*c, i, i->operand(0), i->operand(1)) ||
                      TakeComparisons(*c, i, i->operand(1), i->operand(0));
    }
    if (changed_here) c->Reorder(c->PostOrder());
    changed |= changed_here;
  }
  return changed;
}

}  // namespace kiln::passes
