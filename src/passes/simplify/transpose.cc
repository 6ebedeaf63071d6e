#include <algorithm>

#include "passes/simplify/groups.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

// Whether only dimensions of size 1 move, so the transpose is a reshape.
bool MovesOnlyOnes(const Instruction& transpose) {
  int64_t last = -1;
  for (int64_t d : transpose.dimensions()) {
    if (transpose.operand(0)->shape().dim(d) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

// The place of each dimension of the operand in the transpose.
Ints Inverse(const Ints& permutation) {
  Ints inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  }
  return inverse;
}

// transpose(dot(x, y)) => dot(y, x)   where the free dimensions of x and y change places, and the
// dot has no other users   (order)
Instruction* OfDot(Instruction* i) {
  const Instruction* dot = i->operand(0);
  if (!IsUsedOnce(dot)) return nullptr;
  const Attributes& a = dot->attributes();
  int64_t batch = static_cast<int64_t>(a.IntsOf(Attr::kLhsBatchDims).size());
  int64_t contracting = static_cast<int64_t>(a.IntsOf(Attr::kLhsContractingDims).size());
  int64_t left = dot->operand(0)->shape().rank() - batch - contracting;
  int64_t right = dot->operand(1)->shape().rank() - batch - contracting;
  Ints wanted;
  for (int64_t d = 0; d < batch; ++d) wanted.push_back(d);
  for (int64_t d = 0; d < right; ++d) wanted.push_back(batch + left + d);
  for (int64_t d = 0; d < left; ++d) wanted.push_back(batch + d);
  if (i->dimensions() != wanted) return nullptr;
  Attributes swapped = a;
  auto exchange = [&](Attr x, Attr y) {
    for (auto [from, to] : {std::pair(x, y), std::pair(y, x)}) {
      if (a.Has(from)) {
        swapped.Set(to, a.IntsOf(from));
      } else {
        swapped.Erase(to);
      }
    }
  };
  exchange(Attr::kLhsBatchDims, Attr::kRhsBatchDims);
  exchange(Attr::kLhsContractingDims, Attr::kRhsContractingDims);
  return Make(i, Opcode::kDot, {dot->operand(1), dot->operand(0)}, std::move(swapped));
}

// transpose(reshape(transpose(x))) => transpose(reshape(x))   where merged and split dimensions
// stay together in the inner transpose, and it and the reshape have no other users
Instruction* OfReshape(Instruction* i) {
  const Instruction *reshape = i->operand(0), *inner = reshape->operand(0);
  if (inner->opcode() != Opcode::kTranspose || !IsUsedOnce(reshape) || !IsUsedOnce(inner) ||
      WillBeConstant(inner) || i->shape().num_elements() == 0) {
    return nullptr;
  }
  Instruction* x = inner->operand(0);
  if (!x->shape().is_row_major()) return nullptr;
  auto first = ReshapedFirst(x->shape().dims(), inner->dimensions(), reshape->shape().dims());
  if (!first) return nullptr;
  Ints permutation;
  for (int64_t d : i->dimensions()) {
    permutation.push_back(first->permutation[static_cast<size_t>(d)]);
  }
  Shape shape = ShapeOf(i->shape().type(), first->dims);
  if (!x->shape().SameDimensions(shape)) x = MakeShaped(i, shape, Opcode::kReshape, {x});
  return Make(i, Opcode::kTranspose, {x}, {{Attr::kDimensions, std::move(permutation)}});
}

}  // namespace

Instruction* TransposeRules(Instruction* i) {
  if (i->opcode() != Opcode::kTranspose) return nullptr;
  Instruction* x = i->operand(0);
  // transpose(x) => x   where no dimension moves
  if (std::ranges::is_sorted(i->dimensions()) && x->shape() == i->shape()) return x;
  switch (x->opcode()) {
    case Opcode::kTranspose: {
      // transpose(transpose(x)) => transpose(x)
      Ints both;
      for (int64_t d : i->dimensions()) both.push_back(x->dimensions()[static_cast<size_t>(d)]);
      return Make(i, Opcode::kTranspose, {x->operand(0)}, {{Attr::kDimensions, both}});
    }
    case Opcode::kBroadcast: {
      // transpose(broadcast(x)) => broadcast(x)
      Ints inverse = Inverse(i->dimensions()), both;
      for (int64_t d : x->dimensions()) both.push_back(inverse[static_cast<size_t>(d)]);
      return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, both}});
    }
    case Opcode::kIota: {
      // transpose(iota()) => iota()
      int64_t d = x->attributes().Int(Attr::kIotaDimension);
      return Make(i, Opcode::kIota, {},
                  {{Attr::kIotaDimension, Inverse(i->dimensions())[static_cast<size_t>(d)]}});
    }
    case Opcode::kDot:
      if (Instruction* dot = OfDot(i)) return dot;
      break;
    case Opcode::kReshape:
      if (Instruction* simpler = OfReshape(i)) return simpler;
      break;
    default:
      break;
  }
  // transpose(x) => reshape(x)   where only dimensions of size 1 move
  if (MovesOnlyOnes(*i) && i->shape().is_row_major() && x->shape().is_row_major()) {
    return Make(i, Opcode::kReshape, {x});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
