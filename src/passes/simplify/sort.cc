#include <algorithm>

#include "passes/control/computations.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* SortRules(Instruction* i) {
  if (i->opcode() != Opcode::kSort || i->operand_count() != 1) return nullptr;
  Instruction* x = i->operand(0);
  int64_t d = i->dimensions()[0];
  // sort(x) => x   where the dimension has one element at most
  if (x->shape().dim(d) <= 1) return x;
  // sort(broadcast(x)) => broadcast(x)   where the broadcast repeats elements along the dimension
  if (x->opcode() == Opcode::kBroadcast &&
      std::ranges::find(x->dimensions(), d) == x->dimensions().end()) {
    return x;
  }
  // sort(sort(x)) => sort(x)   where dimension and comparison are the same   (a comparison is a
  // strict weak order, or any result is right)
  if (x->opcode() == Opcode::kSort && x->operand_count() == 1 &&
      x->dimensions() == i->dimensions() && IsSameComputation(*x->called(0), *i->called(0))) {
    return x;
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
