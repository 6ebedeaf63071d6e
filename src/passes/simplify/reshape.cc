#include <algorithm>

#include "passes/simplify/groups.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// reshape(broadcast(x)) => broadcast(x)   where the reshape keeps x's dimensions, and the broadcast
// has no other users
Instruction* OfRepetition(Instruction* i) {
  const Instruction* x = i->operand(0);
  for (int64_t size : x->operand(0)->shape().dims()) {
    if (size == 1) return nullptr;
  }
  std::optional<Ints> places = PlacesOf(x->dimensions(), x->shape().dims(), i->shape().dims());
  if (!places) return nullptr;
  return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, *std::move(places)}});
}

// reshape(broadcast(x)) => broadcast(x)   where the reshape only adds dimensions of size 1, or
// removes some that are not x's, and the broadcast has no other users
Instruction* OfBroadcast(Instruction* i) {
  const Instruction* x = i->operand(0);
  // A repeated scalar has any shape.
  if (x->operand(0)->shape().is_scalar()) return Spread(i, i->shape(), x->operand(0));
  if (!IsUsedOnce(x)) return nullptr;
  if (Instruction* simpler = OfRepetition(i)) return simpler;
  std::vector<int64_t> from = x->shape().dims(), to = i->shape().dims();
  // The place of each dimension of the broadcast after the reshape; -1 if it is gone.
  Ints places(from.size(), -1);
  size_t d = 0;
  for (size_t k = 0; k < from.size(); ++k) {
    while (d < to.size() && to[d] == 1 && from[k] != 1) ++d;
    if (d < to.size() && to[d] == from[k]) {
      places[k] = static_cast<int64_t>(d++);
    } else if (from[k] != 1) {
      return nullptr;
    }
  }
  Ints dimensions;
  for (int64_t k : x->dimensions()) {
    if (places[static_cast<size_t>(k)] < 0) return nullptr;
    dimensions.push_back(places[static_cast<size_t>(k)]);
  }
  return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, dimensions}});
}

// reshape(transpose(reshape(x))) => transpose(reshape(x))   where merged and split dimensions stay
// together in the transpose, and the transpose has no other users
Instruction* OfTranspose(Instruction* i) {
  const Instruction *transpose = i->operand(0), *inner = transpose->operand(0);
  if (inner->opcode() != Opcode::kReshape || !IsUsedOnce(transpose) || WillBeConstant(inner) ||
      i->shape().num_elements() == 0) {
    return nullptr;
  }
  auto first = ReshapedFirst(inner->shape().dims(), transpose->dimensions(), i->shape().dims());
  if (!first) return nullptr;
  Instruction* x = inner->operand(0);
  Shape shape = ShapeOf(i->shape().type(), first->dims);
  if (!x->shape().SameDimensions(shape)) x = MakeShaped(i, shape, Opcode::kReshape, {x});
  return Make(i, Opcode::kTranspose, {x}, {{Attr::kDimensions, std::move(first->permutation)}});
}

}  // namespace

// A reshape of row-major memory is another name for it, and costs nothing.
Instruction* ReshapeRules(Instruction* i) {
  // iota() => 0   where the iota dimension has size 1
  if (i->opcode() == Opcode::kIota &&
      i->shape().dim(i->attributes().Int(Attr::kIotaDimension)) == 1) {
    return SplatNumber(i, i->shape(), 0);
  }
  // A bitcast to the same type is a reshape, the op of the rules below.
  if (i->opcode() == Opcode::kBitcast && i->shape().type() == i->operand(0)->shape().type())
    return Make(i, Opcode::kReshape, {i->operand(0)});
  if (i->opcode() != Opcode::kReshape) return nullptr;
  Instruction* x = i->operand(0);
  // reshape(x) => x   where x has the shape
  if (x->shape() == i->shape()) return x;
  // reshape(reshape(x)) => reshape(x)
  if (x->opcode() == Opcode::kReshape) return Make(i, Opcode::kReshape, {x->operand(0)});
  if (x->opcode() == Opcode::kBroadcast) return OfBroadcast(i);
  // reshape(iota()) => iota()   where the reshape keeps the iota dimension
  if (x->opcode() == Opcode::kIota && i->shape().num_elements() > 0) {
    Ints counted = {x->attributes().Int(Attr::kIotaDimension)};
    if (x->shape().dim(counted[0]) == 1) return nullptr;
    if (auto places = PlacesOf(counted, x->shape().dims(), i->shape().dims())) {
      return Make(i, Opcode::kIota, {}, {{Attr::kIotaDimension, (*places)[0]}});
    }
  }
  if (x->opcode() == Opcode::kTranspose) return OfTranspose(i);
  return nullptr;
}

}  // namespace kiln::passes::simplify
