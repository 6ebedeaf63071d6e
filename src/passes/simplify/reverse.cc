#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

Instruction* MakeReverse(Instruction* at, Instruction* x, Ints dimensions) {
  if (dimensions.empty()) return x;
  return Make(at, Opcode::kReverse, {x}, {{Attr::kDimensions, std::move(dimensions)}});
}

bool Contains(const Ints& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

Instruction* ReverseRules(Instruction* i) {
  if (i->opcode() != Opcode::kReverse) return nullptr;
  Instruction* x = i->operand(0);
  const Ints& dimensions = i->dimensions();
  // reverse(x) => reverse(x)   without dimensions of equal elements   (of size 1, or repeated by a
  // broadcast)
  Ints needed;
  for (int64_t d : dimensions) {
    bool equal = x->shape().dim(d) == 1;
    if (x->opcode() == Opcode::kBroadcast) equal |= !Contains(x->dimensions(), d);
    if (x->opcode() == Opcode::kIota) equal |= x->attributes().Int(Attr::kIotaDimension) != d;
    if (x->IsConstant()) equal |= x->literal().IsSplat();
    if (!equal) needed.push_back(d);
  }
  if (needed.empty() || needed.size() < dimensions.size())
    return MakeReverse(i, x, std::move(needed));
  if (x->opcode() == Opcode::kReverse && !WillBeConstant(x)) {
    // reverse(reverse(x)) => reverse(x)   along the dimensions of just one of them
    Ints once;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Contains(dimensions, d) != Contains(x->dimensions(), d)) once.push_back(d);
    }
    return MakeReverse(i, x->operand(0), std::move(once));
  }
  // reverse(broadcast(x)) => broadcast(reverse(x))   where the broadcast has no other users
  if (x->opcode() == Opcode::kBroadcast && IsUsedOnce(x) &&
      x->operand(0)->shape().num_elements() < x->shape().num_elements()) {
    Ints inner;
    for (size_t d = 0; d < x->dimensions().size(); ++d) {
      if (Contains(dimensions, x->dimensions()[d])) inner.push_back(static_cast<int64_t>(d));
    }
    Instruction* small = MakeShaped(i, x->operand(0)->shape(), Opcode::kReverse, {x->operand(0)},
                                    {{Attr::kDimensions, std::move(inner)}});
    return Make(i, Opcode::kBroadcast, {small}, {{Attr::kDimensions, x->dimensions()}});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
