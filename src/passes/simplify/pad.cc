#include <algorithm>

#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Padding = std::vector<PaddingDimension>;

// pad(pad(x, v), v) => pad(x, v)   where nothing is cut off and the outer one puts nothing between
Instruction* OfPad(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!IsSame(x->operand(1), i->operand(1))) return nullptr;
  Padding both = i->attributes().Padding(Attr::kPadding);
  const Padding& inner = x->attributes().Padding(Attr::kPadding);
  for (size_t d = 0; d < both.size(); ++d) {
    PaddingDimension &p = both[d], q = inner[d];
    if (p.interior != 0 || std::min({p.low, p.high, q.low, q.high}) < 0) return nullptr;
    p = {p.low + q.low, p.high + q.high, q.interior};
  }
  return Make(i, Opcode::kPad, {x->operand(0), i->operand(1)}, {{Attr::kPadding, both}});
}

// pad(x) => slice(x)   where it only cuts off
Instruction* AsSlice(Instruction* i) {
  Instruction* x = i->operand(0);
  std::vector<SliceDimension> slices;
  for (const PaddingDimension& p : i->attributes().Padding(Attr::kPadding)) {
    int64_t size = x->shape().dim(static_cast<int64_t>(slices.size()));
    // Between the elements of one or none there is nothing to put.
    if (p.low > 0 || p.high > 0 || (p.interior != 0 && size > 1)) return nullptr;
    slices.push_back({-p.low, size + p.high, 1});
  }
  return Make(i, Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

}  // namespace

Instruction* PadRules(Instruction* i) {
  if (i->opcode() != Opcode::kPad || i->shape().num_elements() == 0) return nullptr;
  Instruction *x = i->operand(0), *v = i->operand(1);
  // pad({}, v) => broadcast(v)
  if (x->shape().num_elements() == 0) return Spread(i, i->shape(), v);
  // pad(x, v) => x   where nothing is added or cut off
  if (std::ranges::all_of(i->attributes().Padding(Attr::kPadding),
                          [](const PaddingDimension& p) { return p == PaddingDimension{}; })) {
    return x;
  }
  // pad(broadcast(v), v) => broadcast(v)
  if (x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar() &&
      IsSame(x->operand(0), v)) {
    return Spread(i, i->shape(), v);
  }
  if (x->opcode() == Opcode::kPad) {
    if (Instruction* both = OfPad(i)) return both;
  }
  return AsSlice(i);
}

}  // namespace kiln::passes::simplify
