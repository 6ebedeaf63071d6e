#include "grad/reverse.h"

#include <algorithm>
#include <utility>

#include "grad/forward.h"
#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// Maps of a few instructions of a large computation are not arrays.
bool AreFew(const Builder& builder, size_t count) {
  return static_cast<int64_t>(count) * 8 < builder.computation()->instruction_count();
}

bool IsTupleOp(const Instruction& op) {
  return op.opcode() == Opcode::kTuple || op.opcode() == Opcode::kGetTupleElement;
}

// Whether the result changes with its operands at all.
bool IsFlat(const Instruction& op) {
  const GradientRules& gradient = InfoOf(op.opcode()).gradient;
  return gradient.rules == 0 && gradient.reason.empty() && !IsTupleOp(op);
}

}  // namespace

std::vector<Instruction*> InstructionsBehind(const Instruction* x) {
  std::vector<Instruction*> behind;
  const ir::Instructions all = x->parent()->instructions();
  for (auto it = all.end(); *--it != x;) behind.push_back(*it);
  std::ranges::reverse(behind);
  return behind;
}

Reverse::Reverse(Builder& builder, const Options& options, std::span<Instruction* const> sources,
                 std::span<Instruction* const> instructions)
    : builder_(builder), options_(options) {
  if (!AreFew(builder, instructions.size())) {
    active_ = ir::InstructionSet(*builder.computation());
    masked_ = ir::InstructionSet(*builder.computation());
    cotangents_ = ir::InstructionMap<Derivative>(*builder.computation());
  }
  for (const Instruction* source : sources) active_.Insert(source);
  for (Instruction* op : instructions) {
    if (!IsDifferentiable(op->shape()) || IsFlat(*op) || IsStopped(*op)) continue;
    if (std::ranges::none_of(op->operands(), [&](auto* x) { return IsActive(x); })) continue;
    active_.Insert(op);
    order_.push_back(op);
  }
}

void Reverse::Add(const Instruction* x, const Derivative& cotangent) {
  if (!IsActive(x) || cotangent.IsZero()) return;
  Derivative& sum = cotangents_[x];
  sum = builder_.Accumulate(sum, cotangent);
}

Derivative Reverse::CotangentOf(const Instruction* x) const {
  const Derivative* found = cotangents_.Find(x);
  return found ? *found : Derivative();
}

void Reverse::Run() {
  const bool all_masked = builder_.SetMasked(false);
  for (Instruction* op : std::ranges::reverse_view(order_)) {
    const Derivative cotangent = CotangentOf(op);
    if (cotangent.IsZero()) continue;
    HandOnMask(op);
    builder_.SetMasked(all_masked || masked_.contains(op));
    const Instruction* outer = builder_.SetOrigin(op);
    HandOn(op, cotangent);
    builder_.SetOrigin(outer);
  }
  builder_.SetMasked(all_masked);
}

void Reverse::HandOnMask(const Instruction* op) {
  const bool masks = op->opcode() == Opcode::kSelect;
  // What a broadcast adds up is not masked as a whole, but what a reduction spreads is.
  const bool keeps = HasTrait(op->opcode(), kElementwise) || HasTrait(op->opcode(), kView) ||
                     op->opcode() == Opcode::kReduce;
  if (!masks && !(keeps && masked_.contains(op))) return;
  if (op->opcode() == Opcode::kBroadcast) return;
  for (const Instruction* x : op->operands()) {
    if (IsActive(x)) masked_.Insert(x);
  }
}

void Reverse::HandOn(Instruction* op, const Derivative& cotangent) {
  if (IsTupleOp(*op)) return HandOnTuples(op, cotangent);
  const Rules& rules = RulesOf(op->opcode());
  if (rules.flow_reverse) return rules.flow_reverse(*this, op, cotangent);
  if (rules.partial) return HandOnPartials(op, cotangent.array);
  if (rules.transpose && rules.transpose(*this, op, cotangent)) return;
  if (rules.tangent) return HandOnTangents(op, op->operands(), rules.tangent, cotangent);
  if (rules.expansion) return HandOnExpanded(op, cotangent, rules.expansion);
  builder_.Fail(NoDerivative(*op));
}

void Reverse::HandOnTuples(Instruction* op, const Derivative& cotangent) {
  if (op->opcode() == Opcode::kTuple) {
    for (int64_t k = 0; k < op->operand_count(); ++k) {
      Add(op->operand(k), cotangent.Element(static_cast<size_t>(k)));
    }
    return;
  }
  const auto k = static_cast<size_t>(op->attributes().Int(Attr::kIndex));
  Derivative tuple;
  tuple.elements.resize(k + 1);
  tuple.elements[k] = cotangent;
  Add(op->operand(0), tuple);
}

void Reverse::HandOnPartials(Instruction* op, Instruction* cotangent) {
  for (int64_t k = 0; k < op->operand_count(); ++k) {
    if (!IsActive(op->operand(k))) continue;
    Instruction* part = RulesOf(op->opcode()).partial(builder_, op, k, cotangent);
    if (part) Add(op->operand(k), part);
  }
}

// The expression is built for unknown tangents, and transposed.
void Reverse::HandOnTangents(Instruction* op, std::span<Instruction* const> of,
                             TangentOfOp* tangent_of, const Derivative& cotangent) {
  const Instruction* last = builder_.computation()->instructions().back();
  Forward forward(builder_, options_, Forward::Few());
  std::vector<Instruction*> operands, unknowns;
  for (Instruction* x : of) {
    if (!IsActive(x) || forward.IsActive(x)) continue;
    // No constant, which a rule could recognise as 0.
    Instruction* unknown = builder_.Add(Opcode::kOptBarrier, {builder_.Whole({}, x)});
    forward.SetTangent(x, {unknown});
    operands.push_back(x);
    unknowns.push_back(unknown);
  }
  const Derivative tangent = tangent_of(forward, op);
  Reverse transposed(builder_, options_, unknowns, InstructionsBehind(last));
  transposed.AddLeaves(tangent, cotangent);
  transposed.Run();
  for (size_t k = 0; k < operands.size(); ++k) {
    Add(operands[k], transposed.CotangentOf(unknowns[k]));
  }
}

void Reverse::AddLeaves(const Derivative& value, const Derivative& cotangent) {
  if (value.array) Add(value.array, cotangent);
  for (size_t k = 0; k < value.elements.size(); ++k) {
    AddLeaves(value.elements[k], cotangent.Element(k));
  }
}

void Reverse::HandOnExpanded(Instruction* op, const Derivative& cotangent, Expand expand) {
  const Instruction* last = builder_.computation()->instructions().back();
  Instruction* expansion = expand(builder_, op);
  std::vector<Instruction*> operands;
  for (Instruction* x : op->operands()) {
    if (IsActive(x) && !std::ranges::count(operands, x)) operands.push_back(x);
  }
  Reverse expanded(builder_, options_, operands, InstructionsBehind(last));
  expanded.Add(expansion, cotangent);
  expanded.Run();
  for (const Instruction* x : operands) Add(x, expanded.CotangentOf(x));
}

}  // namespace kiln::grad
