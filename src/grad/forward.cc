#include "grad/forward.h"

#include <algorithm>
#include <utility>

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

void Forward::SetTangent(const Instruction* x, Derivative tangent) {
  if (!tangent.IsZero()) tangents_[x] = std::move(tangent);
}

Derivative Forward::TangentOf(const Instruction* x) const {
  const Derivative* found = tangents_.Find(x);
  return found ? *found : Derivative();
}

void Forward::Run(std::span<Instruction* const> instructions) {
  for (Instruction* op : instructions) {
    if (!IsDifferentiable(op->shape())) continue;
    if (std::ranges::none_of(op->operands(), [&](auto* x) { return IsActive(x); })) continue;
    const Instruction* outer = builder_.SetOrigin(op);
    SetTangent(op, builder_.Accumulate(TangentOf(op), Of(op)));
    builder_.SetOrigin(outer);
  }
}

Derivative Forward::Of(Instruction* op) {
  const Rules& rules = RulesOf(op->opcode());
  if (op->opcode() == Opcode::kTuple || op->opcode() == Opcode::kGetTupleElement) {
    return OfTuples(op);
  }
  if (IsStopped(*op)) return {};
  if (rules.flow_forward) return rules.flow_forward(*this, op);
  if (rules.partial) return OfPartials(op);
  if (rules.tangent) return rules.tangent(*this, op);
  if (rules.expansion) return TangentOfExpanded(op, rules.expansion);
  if (rules.transpose) {
    builder_.RequireSum(op);
    return OfLinear(op);
  }
  if (!InfoOf(op->opcode()).gradient.reason.empty()) builder_.Fail(NoDerivative(*op));
  return {};
}

Derivative Forward::TangentOfExpanded(Instruction* op, Expand expand) {
  const Instruction* last = builder_.computation()->instructions().back();
  Instruction* expansion = expand(builder_, op);
  Run(InstructionsBehind(last));
  return TangentOf(expansion);
}

Derivative Forward::OfTuples(Instruction* op) {
  if (op->opcode() == Opcode::kGetTupleElement) {
    const int64_t k = op->attributes().Int(Attr::kIndex);
    return TangentOf(op->operand(0)).Element(static_cast<size_t>(k));
  }
  Derivative tangent;
  for (const Instruction* x : op->operands()) tangent.elements.push_back(TangentOf(x));
  return tangent;
}

Derivative Forward::OfPartials(Instruction* op) {
  Derivative sum;
  for (int64_t k = 0; k < op->operand_count(); ++k) {
    Instruction* t = TangentOf(op->operand(k)).array;
    if (!t) continue;
    Instruction* part = RulesOf(op->opcode()).partial(builder_, op, k, t);
    if (part) sum = builder_.Accumulate(sum, Derivative{part});
  }
  return sum;
}

// f(x + t) - f(x) = f(t); of an op of several operands with zeros for those without a tangent. The
// product of two is linear in each: f(x, y) -> f(t, y) + f(x, u).
Derivative Forward::OfLinear(Instruction* op) {
  const auto apply = [&](std::vector<Instruction*> operands) {
    ir::InstructionSpec spec = ir::CopySpec(*op, std::move(operands));
    return builder_.AddShaped(op->shape(), op->opcode(), spec.operands, spec.attributes,
                              spec.called);
  };
  std::vector<Instruction*> operands(op->operands().begin(), op->operands().end());
  if (!InfoOf(op->opcode()).gradient.Has(GradientRules::kInEach)) {
    for (Instruction*& x : operands) {
      if (IsDifferentiable(x->shape())) x = WholeTangent(x);
    }
    return builder_.Parts(apply(std::move(operands)));
  }
  Derivative sum;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!IsActive(operands[k])) continue;
    std::vector<Instruction*> one = operands;
    one[k] = WholeTangent(operands[k]);
    sum = builder_.Accumulate(sum, builder_.Parts(apply(std::move(one))));
  }
  return sum;
}

}  // namespace kiln::grad
