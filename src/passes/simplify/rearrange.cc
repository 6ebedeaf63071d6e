// Reshapes and transposes move towards the root. There they merge with others, or with a reduction,
// a product or a broadcast. The ops before them become one elementwise group, on arrays as they lie
// in memory.

#include <algorithm>

#include "passes/simplify/groups.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool IsRearrangement(const Instruction* x) {
  return x->opcode() == Opcode::kReshape || x->opcode() == Opcode::kTranspose;
}

// Whether both rearrange the same shape in the same way.
bool MoveAlike(const Instruction* x, const Instruction* y) {
  return x->opcode() == y->opcode() &&
         x->operand(0)->shape().SameDimensions(y->operand(0)->shape()) &&
         (x->opcode() == Opcode::kReshape || x->dimensions() == y->dimensions());
}

// x has no users besides i.
bool IsUsedOnlyBy(const Instruction* x, const Instruction* i) {
  return !x->IsRoot() && x->users().size() == 1 && x->users()[0] == i;
}

// The broadcast without the rearrangement; null if the rearrangement merges or splits the
// dimensions of the broadcast's operand.
Instruction* Unmoved(Instruction* i, const Instruction* lead, const Instruction* broadcast,
                     const Shape& shape) {
  const Instruction* x = broadcast->operand(0);
  std::optional<Ints> places = Ints{};
  if (lead->opcode() == Opcode::kTranspose) {
    for (int64_t d : broadcast->dimensions()) {
      places->push_back(lead->dimensions()[static_cast<size_t>(d)]);
    }
  } else {
    for (int64_t size : x->shape().dims()) {
      if (size == 1) return nullptr;
    }
    places =
        PlacesOf(broadcast->dimensions(), lead->shape().dims(), lead->operand(0)->shape().dims());
  }
  if (!places) return nullptr;
  return MakeShaped(i, WithType(shape, x->shape().type()), Opcode::kBroadcast,
                    {broadcast->operand(0)}, {{Attr::kDimensions, *std::move(places)}});
}

}  // namespace

Instruction* RearrangementRules(Instruction* i) {
  // A copy is there for its layout.
  if (!IsElementwise(i->opcode()) || i->opcode() == Opcode::kCopy) return nullptr;
  const Instruction* lead = nullptr;
  for (const Instruction* x : i->operands()) {
    if (x->shape().is_scalar() && !i->shape().is_scalar()) continue;
    if (IsRearrangement(x)) {
      if (!IsUsedOnlyBy(x, i) || (lead && !MoveAlike(lead, x))) return nullptr;
      if (!x->operand(0)->shape().is_row_major()) return nullptr;
      lead = x;
    } else if (!IsSpread(x) && !(x->opcode() == Opcode::kBroadcast && IsUsedOnlyBy(x, i))) {
      return nullptr;
    }
    if (x->shape().num_elements() == 1) return nullptr;
  }
  if (!lead || WillBeConstant(lead)) return nullptr;
  // Elements are moved while they are narrow.
  bool widens = i->opcode() == Opcode::kConvert &&
                BitWidth(i->shape().type()) > BitWidth(lead->shape().type());
  if (widens && lead->opcode() == Opcode::kTranspose) return nullptr;
  // op(reshape(x), reshape(y), broadcast(v)) => reshape(op(x, y, broadcast(v)))   where x and y
  // have the same dimensions, the reshape keeps those of v, and the operands have no other users
  // op(transpose(x), transpose(y), broadcast(v)) => transpose(op(x, y, broadcast(v)))   where the
  // permutations are equal, and the operands have no other users   (no conversion to a wider type)
  Shape shape = WithType(lead->operand(0)->shape(), i->shape().type());
  std::vector<Instruction*> operands;
  for (Instruction* x : i->operands()) {
    if (x->shape().is_scalar() && !i->shape().is_scalar()) {
      operands.push_back(x);
    } else if (IsRearrangement(x)) {
      operands.push_back(x->operand(0));
    } else if (IsSpread(x)) {
      operands.push_back(Spread(i, WithType(shape, x->shape().type()), x->operand(0)));
    } else {
      operands.push_back(Unmoved(i, lead, x, shape));
      if (!operands.back()) return nullptr;
    }
  }
  Instruction* op = MakeShaped(i, shape, i->opcode(), std::move(operands), i->attributes());
  return Make(i, lead->opcode(), {op}, lead->attributes());
}

}  // namespace kiln::passes::simplify
