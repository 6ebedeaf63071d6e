#include "passes/expand/expand.h"

#include <algorithm>

#include "ir/batch_norm.h"
#include "kernel/schedule/scheduler.h"
#include "passes/expand/sized.h"
#include "passes/growth.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using ir::Computation;
using ir::Instruction;

Result<Instruction*> BatchNorm(Builder& b, Instruction* i) { return ir::BatchNorm(b, i); }

// Of constant dimensions.
Result<Instruction*> SetDimensionSize(Builder& b, Instruction* i) {
  const int64_t along = i->dimensions()[0];
  if (expand::IsSize(*i->operand(1), i->shape().dim(along))) return i->operand(0);
  std::vector<expand::Sized> operands;
  for (Instruction* operand : i->operands()) {
    operands.push_back(
        {operand, std::vector<Instruction*>(static_cast<size_t>(operand->shape().rank()))});
  }
  KILN_ASSIGN_OR_RETURN(auto results, expand::SizedSetDimensionSize(b, i, operands));
  return results[0].array;
}

struct Row {
  Opcode opcode;
  expand::Expansion expand;
};

constexpr Row kRows[] = {
    {Opcode::kBatchNormGrad, BatchNorm},
    {Opcode::kBatchNormInference, BatchNorm},
    {Opcode::kBatchNormTraining, BatchNorm},
    {Opcode::kConvolution, expand::Convolution},
    {Opcode::kRng, expand::Rng},
    {Opcode::kRngBitGenerator, expand::RngBitGenerator},
    {Opcode::kAllGather, expand::OneProcess},
    {Opcode::kAllReduce, expand::OneProcess},
    {Opcode::kAllToAll, expand::OneProcess},
    {Opcode::kCollectiveBroadcast, expand::OneProcess},
    {Opcode::kCollectivePermute, expand::OneProcess},
    {Opcode::kPartitionId, expand::OneProcess},
    {Opcode::kReduceScatter, expand::OneProcess},
    {Opcode::kReplicaId, expand::OneProcess},
    {Opcode::kSelectAndScatter, expand::SelectAndScatter},
    {Opcode::kSetDimensionSize, SetDimensionSize},
    {Opcode::kNextAfter, expand::NextAfter},
    {Opcode::kBitcast, expand::Bitcast},
};

// Whether expand-narrow has the op's bits, which are a byte or less.
bool IsOfBytes(const Instruction& i) {
  auto is_narrow = [](const Shape& shape) { return WideOf(shape.type()) != shape.type(); };
  switch (i.opcode()) {
    case Opcode::kNextAfter:
      return is_narrow(i.shape());
    case Opcode::kBitcast:
      return is_narrow(i.shape()) || is_narrow(i.operand(0)->shape());
    default:
      return false;
  }
}

Result<bool> Expand(Computation& c, const Row& row, const PassContext& context) {
  if (!c.MayHold(row.opcode)) return false;
  std::vector<Instruction*> found;
  for (Instruction* i : c.instructions()) {
    if (i->opcode() == row.opcode && !IsOfBytes(*i)) found.push_back(i);
  }
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  for (Instruction* i : found) {
    KILN_RETURN_IF_ERROR(CheckGrowth(c, context));
    Builder b(i, *scheduler);
    KILN_ASSIGN_OR_RETURN(Instruction * value, row.expand(b, i));
    value = b.InLayout(value, i->shape());
    KILN_RETURN_IF_ERROR(b.status().WithContext(Cat(OpcodeName(row.opcode), " '", i->name(), "'")));
    c.ReplaceAllUses(i, value);
    c.Remove(i);
  }
  return !found.empty();
}

}  // namespace

bool expand::IsExpanded(Opcode opcode) {
  return std::ranges::find(kRows, opcode, &Row::opcode) != std::end(kRows);
}

Result<bool> ExpandOps(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Callees first, because expanded ops may call computations changed by expansions.
  for (Computation* c : module.CalleesFirst()) {
    if (c->MayHold(Opcode::kReduceWindow) || c->MayHold(Opcode::kSelectAndScatter)) {
      for (Instruction* i : c->instructions()) {
        if (i->opcode() != Opcode::kReduceWindow && i->opcode() != Opcode::kSelectAndScatter) {
          continue;
        }
        KILN_ASSIGN_OR_RETURN(bool clipped, expand::ClipWindows(i));
        changed |= clipped;
      }
    }
    for (const Row& row : kRows) {
      KILN_ASSIGN_OR_RETURN(bool any, Expand(*c, row, context));
      changed |= any;
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
