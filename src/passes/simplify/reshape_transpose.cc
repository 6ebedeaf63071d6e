#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

bool IsIdentity(const Ints& permutation) {
  for (size_t d = 0; d < permutation.size(); ++d) {
    if (permutation[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

// Whether a transpose moves dimensions of size 1 only, and so is a reshape.
bool MovesOnlyOnes(const Instruction& transpose) {
  int64_t last = -1;
  for (int64_t d : transpose.dimensions()) {
    if (transpose.operand(0)->shape().dim(d) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

}  // namespace

Instruction* ReshapeAndTranspose(Instruction* i) {
  if (i->opcode() == Opcode::kReshape) {
    Instruction* x = i->operand(0);
    // reshape(x) => x   where the shape is x's already
    if (x->shape() == i->shape()) return x;
    // reshape(reshape(x)) => reshape(x)
    if (x->opcode() == Opcode::kReshape) return Make(i, Opcode::kReshape, {x->operand(0)});
  }
  if (i->opcode() == Opcode::kTranspose) {
    Instruction* x = i->operand(0);
    // transpose(x) => x   where no dimension moves
    if (IsIdentity(i->dimensions()) && x->shape() == i->shape()) return x;
    // transpose(transpose(x)) => transpose(x)
    if (x->opcode() == Opcode::kTranspose) {
      Ints both;
      for (int64_t d : i->dimensions()) both.push_back(x->dimensions()[d]);
      return Make(i, Opcode::kTranspose, {x->operand(0)}, {{Attr::kDimensions, both}});
    }
    // transpose(x) => reshape(x)   where only dimensions of size 1 move
    if (MovesOnlyOnes(*i) && i->shape().is_row_major() && x->shape().is_row_major()) {
      return Make(i, Opcode::kReshape, {x});
    }
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
