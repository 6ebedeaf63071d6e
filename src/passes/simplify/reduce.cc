#include <algorithm>

#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* ReduceRules(Instruction* i) {
  if (i->opcode() != Opcode::kReduce || i->operand_count() != 2) return nullptr;
  Instruction* x = i->operand(0);
  // reduce(transpose(x)) => reduce(x)   where the kept dimensions stay in order and the combiner is
  //                                     commutative, as every reducer of one known op is
  if (x->opcode() == Opcode::kTranspose) {
    const Instruction* root = i->called(0)->root();
    if (!HasTrait(root->opcode(), kCommutative) || root->operand_count() != 2 ||
        root->operand(0)->opcode() != Opcode::kParameter ||
        root->operand(1)->opcode() != Opcode::kParameter || root->operand(0) == root->operand(1)) {
      return nullptr;
    }
    std::vector<bool> reduced(x->shape().rank());
    Ints dimensions;
    for (int64_t d : i->dimensions()) {
      reduced[d] = true;
      dimensions.push_back(x->dimensions()[d]);
    }
    int64_t last = -1;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (reduced[d]) continue;
      if (x->dimensions()[d] < last) return nullptr;
      last = x->dimensions()[d];
    }
    std::sort(dimensions.begin(), dimensions.end());
    return i->parent()->Create({.opcode = Opcode::kReduce,
                                .operands = {x->operand(0), i->operand(1)},
                                .attributes = {{Attr::kDimensions, dimensions}},
                                .called = {i->called(0)},
                                .shape = i->shape(),
                                .op_name = i->op_name()},
                               i);
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
