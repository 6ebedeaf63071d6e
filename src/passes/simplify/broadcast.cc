#include "passes/simplify/simplify.h"

namespace kiln::passes::simplify {

using ir::Instruction;

Instruction* BroadcastRules(Instruction* i) {
  if (i->opcode() != Opcode::kBroadcast) return nullptr;
  Instruction* x = i->operand(0);
  // broadcast(x) => x   where nothing is added and nothing moves
  bool in_order = true;
  for (size_t d = 0; d < i->dimensions().size(); ++d) {
    in_order &= i->dimensions()[d] == static_cast<int64_t>(d);
  }
  if (in_order && x->shape() == i->shape()) return x;
  // broadcast(broadcast(x)) => broadcast(x)
  if (x->opcode() == Opcode::kBroadcast) {
    Ints both;
    for (int64_t d : x->dimensions()) both.push_back(i->dimensions()[d]);
    return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, both}});
  }
  return nullptr;
}

}  // namespace kiln::passes::simplify
