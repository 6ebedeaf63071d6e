#include <algorithm>
#include <unordered_set>

#include "kernel/build.h"
#include "passes/control/computations.h"
#include "passes/expand/expand.h"
#include "passes/growth.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool HasBounds(const Shape& shape) {
  bool any = false;
  ForEachLeaf(shape, [&](const Shape& leaf, auto) {
    any |= leaf.is_array() && std::ranges::any_of(leaf.dimensions(), &Dimension::is_bounded);
  });
  return any;
}

// Whether the fusion is a kernel as it is: no op in it becomes several, and each result is an array
// of one iteration space.
bool IsOneKernel(const Instruction& fusion, kernel::FusionAnalysis& analysis) {
  for (const Instruction* member : fusion.called(0)->instructions()) {
    if (expand::IsExpanded(member->opcode()) || HasBounds(member->shape())) return false;
  }
  const kernel::Group group = kernel::GroupOf(fusion);
  const bool are_arrays = std::ranges::all_of(
      group.roots, [](const Instruction* root) { return root->shape().is_array(); });
  // One reduction or sort of several arrays gives them all.
  const bool is_hero = group.roots.size() == 1 && group.roots[0]->shape().is_tuple() &&
                       !group.roots[0]->shape().elements().empty() &&
                       group.roots[0] == fusion.called(0)->root();
  if (group.roots.empty() || !(are_arrays || is_hero)) return false;
  return analysis.KernelOf(fusion).ok();
}

// Whether the computations that an op calls are parts of kernels.
bool CallsParts(Opcode opcode) {
  return opcode != Opcode::kCall && opcode != Opcode::kWhile && opcode != Opcode::kConditional &&
         opcode != Opcode::kCustomCall;
}

}  // namespace

// fusion(f, x) => f(x)   where the fusion is not one kernel, or is part of another fusion, or of a
//                        function of scalars such as a reducer
Result<bool> InlineFusions(ir::Module& module, const PassContext& context) {
  const bool has_fusions = std::ranges::any_of(
      module.computations(), [](const auto& c) { return c->MayHold(Opcode::kFusion); });
  if (!has_fusions) return false;
  std::unordered_set<const Computation*> parts;
  for (const auto& c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      if (CallsParts(i->opcode())) parts.insert(i->called().begin(), i->called().end());
    }
  }
  KILN_RETURN_IF_ERROR(CheckCopies(module, context));
  bool changed = false;
  // Callees first: copied computations have no fusions any more.
  for (Computation* c : module.CalleesFirst()) {
    std::vector<Instruction*> found;
    for (Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kFusion) continue;
      KILN_RETURN_IF_ERROR(context.interrupt.Check());
      if (parts.contains(c) || !IsOneKernel(*i, *context.fusions)) found.push_back(i);
    }
    for (Instruction* fusion : found) {
      c->ReplaceAllUses(fusion, CopyBody(fusion, *fusion->called(0), fusion->operands()));
      c->Remove(fusion);
    }
    changed |= !found.empty();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
