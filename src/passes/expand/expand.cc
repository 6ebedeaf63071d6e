#include "passes/expand/expand.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using ir::Computation;
using ir::Instruction;

struct Row {
  Opcode opcode;
  expand::Expansion expand;
};

constexpr Row kRows[] = {
    {Opcode::kBatchNormGrad, expand::BatchNormGrad},
    {Opcode::kBatchNormInference, expand::BatchNormInference},
    {Opcode::kBatchNormTraining, expand::BatchNormTraining},
    {Opcode::kRngBitGenerator, expand::RngBitGenerator},
    {Opcode::kAllGather, expand::OneProcess},
    {Opcode::kAllReduce, expand::OneProcess},
    {Opcode::kAllToAll, expand::OneProcess},
    {Opcode::kCollectiveBroadcast, expand::OneProcess},
    {Opcode::kCollectivePermute, expand::OneProcess},
    {Opcode::kPartitionId, expand::OneProcess},
    {Opcode::kReduceScatter, expand::OneProcess},
    {Opcode::kReplicaId, expand::OneProcess},
    {Opcode::kNextAfter, expand::NextAfter},
};

// The value in the layout that the instruction has.
Instruction* InLayout(Builder& b, Instruction* value, const Shape& shape) {
  if (value->shape() == shape) return value;
  if (shape.is_tuple()) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < shape.elements().size(); ++k) {
      elements.push_back(
          InLayout(b, b.Element(value, static_cast<int64_t>(k)), shape.elements()[k]));
    }
    return b.Tuple(std::move(elements));
  }
  Instruction* copy = b.Unary(Opcode::kCopy, value);
  copy->set_shape(shape);
  return copy;
}

Result<bool> Expand(Computation& c, const Row& row) {
  if (!c.MayHold(row.opcode)) return false;
  std::vector<Instruction*> found;
  for (Instruction* i : c.instructions()) {
    if (i->opcode() == row.opcode) found.push_back(i);
  }
  for (Instruction* i : found) {
    Builder b(i);
    KILN_ASSIGN_OR_RETURN(Instruction * value, row.expand(b, i));
    value = InLayout(b, value, i->shape());
    KILN_RETURN_IF_ERROR(b.status().WithContext(Cat(OpcodeName(row.opcode), " '", i->name(), "'")));
    c.ReplaceAllUses(i, value);
    c.Remove(i);
  }
  return !found.empty();
}

}  // namespace

Result<bool> ExpandOps(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callees first, as what is expanded may call computations that expansions have changed.
  for (Computation* c : module.CalleesFirst()) {
    for (const Row& row : kRows) {
      KILN_ASSIGN_OR_RETURN(bool any, Expand(*c, row));
      changed |= any;
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
