// Without fusion, an op that becomes several should still be few kernels. It is put into a
// computation of its own, expanded there, and fused there alone.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ir/host_call.h"
#include "kernel/schedule/scheduler.h"
#include "passes/expand/expand.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Whether there is a value that compiled code holds as others.
bool HasOtherForm(const Shape& shape) {
  bool any = false;
  ForEachLeaf(shape, [&](const Shape& leaf, auto) {
    any |= leaf.is_array() && (IsComplex(leaf.type()) || WideOf(leaf.type()) != leaf.type());
  });
  return any;
}

bool BecomesSeveral(const Instruction& i) {
  if (HasTrait(i.opcode(), kStructural) || ir::IsHostCall(i)) return false;
  return expand::IsExpanded(i.opcode()) || HasOtherForm(i.shape()) ||
         std::ranges::any_of(i.operands(),
                             [](const Instruction* o) { return HasOtherForm(o->shape()); });
}

// op(x) => call(x), to_apply={op}   where numbers among the operands go along, so that they are
// still known
void Outline(Instruction* i) {
  Computation* c = i->parent();
  Computation* body = c->parent()->AddComputation(OpcodeName(i->opcode()));
  std::vector<Instruction*> arguments, operands;
  for (Instruction* operand : i->operands()) {
    if (operand->IsConstant() && operand->shape().is_array() && operand->shape().rank() == 0) {
      operands.push_back(body->Create(ir::CopySpec(*operand, {})));
      continue;
    }
    const auto number = std::ranges::find(arguments, operand) - arguments.begin();
    if (number == std::ssize(arguments)) {
      arguments.push_back(operand);
      body->Create({.opcode = Opcode::kParameter,
                    .attributes = {{Attr::kParameterNumber, int64_t{number}}},
                    .shape = operand->shape()});
    }
    operands.push_back(body->parameter(number));
  }
  body->set_root(body->Create(ir::CopySpec(*i, std::move(operands))));
  c->ReplaceAllUses(i, c->Create({.opcode = Opcode::kCall,
                                  .operands = std::move(arguments),
                                  .called = {body},
                                  .shape = i->shape()},
                                 i));
  c->Remove(i);
}

}  // namespace

Result<bool> OutlineOps(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* c : ProgramComputations(module)) {
    std::vector<Instruction*> found;
    for (Instruction* i : c->instructions()) {
      if (BecomesSeveral(*i)) found.push_back(i);
    }
    for (Instruction* i : found) Outline(i);
    changed |= !found.empty();
  }
  return changed;
}

Result<bool> FuseOutlined(ir::Module& module, const PassContext& context) {
  // Before any is fused, which adds computations.
  std::unordered_set<Computation*> called;
  for (const auto& c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kCall) called.insert(i->called(0));
    }
  }
  if (called.empty()) return false;
  std::vector<Computation*> bodies;
  for (const auto& c : module.computations()) {
    if (called.contains(c.get())) bodies.push_back(c.get());
  }
  PartFusions(module);
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  for (Computation* c : bodies) {
    FuseRowsIn(*c, *scheduler, *context.fusions);
    FuseIn(*c, *scheduler, *context.fusions);
  }
  return InlineCalls(module, context);
}

}  // namespace kiln::passes
