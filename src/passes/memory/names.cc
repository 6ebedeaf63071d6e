#include "passes/memory/names.h"

namespace kiln::passes {

using ir::Instruction;

int64_t LeafCount(const Shape& shape) {
  int64_t n = 0;
  ForEachLeaf(shape, [&](const Shape&, std::span<const int64_t>) { ++n; });
  return n;
}

int64_t LeafOffset(const Shape& tuple, int64_t index) {
  int64_t n = 0;
  for (int64_t i = 0; i < index; ++i) n += LeafCount(tuple.elements()[static_cast<size_t>(i)]);
  return n;
}

bool IsName(const Instruction& i) {
  return i.opcode() == Opcode::kTuple || i.opcode() == Opcode::kGetTupleElement ||
         (i.opcode() == Opcode::kReshape && i.shape().is_row_major() &&
          i.operand(0)->shape().is_row_major());
}

Leaf OriginOf(Leaf leaf) {
  while (IsName(*leaf.instruction)) {
    const Instruction& i = *leaf.instruction;
    if (i.opcode() == Opcode::kTuple) {
      int64_t operand = 0;
      for (; leaf.index >= LeafCount(i.operand(operand)->shape()); ++operand) {
        leaf.index -= LeafCount(i.operand(operand)->shape());
      }
      leaf.instruction = i.operand(operand);
      continue;
    }
    if (i.opcode() == Opcode::kGetTupleElement) {
      leaf.index += LeafOffset(i.operand(0)->shape(), i.attributes().Int(Attr::kIndex));
    }
    leaf.instruction = i.operand(0);
  }
  return leaf;
}

Readers ReadersOf(Leaf origin) {
  Readers result;
  std::vector<Leaf> names = {origin};
  while (!names.empty()) {
    Leaf name = names.back();
    names.pop_back();
    result.is_result |= name.instruction->IsRoot();
    for (const Instruction* user : name.instruction->users()) {
      int64_t before = 0;  // leaves of the tuple before the operand
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == name.instruction) {
          if (user->opcode() == Opcode::kTuple) {
            names.push_back({user, before + name.index});
          } else if (user->opcode() == Opcode::kGetTupleElement) {
            int64_t first =
                LeafOffset(name.instruction->shape(), user->attributes().Int(Attr::kIndex));
            if (name.index >= first && name.index < first + LeafCount(user->shape())) {
              names.push_back({user, name.index - first});
            }
          } else if (IsName(*user)) {
            names.push_back({user, name.index});
          } else {
            result.readers.push_back({user, o, name.index});
          }
        }
        if (user->opcode() == Opcode::kTuple) before += LeafCount(user->operand(o)->shape());
      }
    }
  }
  return result;
}

}  // namespace kiln::passes
