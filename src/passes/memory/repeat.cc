#include "passes/memory/repeat.h"

#include <algorithm>

#include "ir/analysis/cost.h"
#include "ir/analysis/effects.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

// The unit of costs is the time of a simple op for a byte of its result, in which a product does
// two operations. A reduction reads its operand, too.
constexpr int64_t kCostOfReducedByte = 2;
constexpr int64_t kOperationsPerCost = 2;
// Sums of costs stay far from overflow.
constexpr int64_t kMostCost = int64_t{1} << 48;

// By byte of the result, for ops that make each element from a few.
int64_t CostPerByte(OpCost cost) {
  switch (cost) {
    case OpCost::kFree:
    case OpCost::kPlace:
      return 0;
    case OpCost::kSimple:
      return 1;
    case OpCost::kDivision:
      return 3;
    case OpCost::kFunction:
      return 8;
    case OpCost::kSpecialFunction:
      return 16;
    case OpCost::kReduction:
    case OpCost::kContraction:
    case OpCost::kSort:
    case OpCost::kLibrary:
    case OpCost::kCall:
      break;
  }
  return -1;
}

bool IsFused(Opcode opcode) {
  return IsElementwise(opcode) || IsView(opcode) || opcode == Opcode::kIota ||
         opcode == Opcode::kPatches;
}

// Whether more than an op that fusion takes in may be repeated.
bool IsRepeatable(const Instruction& i) {
  if (HasTrait(i.opcode(), kStructural) || !ir::IsPure(i)) return false;
  return i.opcode() == Opcode::kReduce || i.opcode() == Opcode::kDot ||
         CostPerByte(OpCostOf(i.opcode())) >= 0;
}

}  // namespace

int64_t CostToRepeat(const Instruction& i, int effort) {
  if (!i.shape().is_array() || !i.shape().is_static()) return -1;
  if (!i.control_predecessors().empty() || !i.control_successors().empty()) return -1;
  if (HasTrait(i.opcode(), kSideEffect) || HasTrait(i.opcode(), kCollective)) return -1;
  if (!IsFused(i.opcode()) && (effort == 0 || !IsRepeatable(i))) return -1;
  int64_t cost = 0;
  if (i.opcode() == Opcode::kDot) {
    cost = ir::OperationsOf(i).flops / kOperationsPerCost;
  } else if (i.opcode() == Opcode::kReduce) {
    cost = kCostOfReducedByte * i.operand(0)->shape().byte_size();
  } else {
    const int64_t per_byte = CostPerByte(OpCostOf(i.opcode()));
    if (per_byte < 0) return -1;
    cost = per_byte * i.shape().byte_size();
  }
  return cost > 0 ? std::clamp<int64_t>(cost >> effort, 1, kMostCost) : 0;
}

}  // namespace kiln::passes
