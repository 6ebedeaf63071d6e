#include "passes/memory/names.h"

#include <algorithm>

namespace kiln::passes {

using ir::Instruction;

int64_t LeafCount(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t n = 0;
  for (const Shape& element : shape.elements()) n += LeafCount(element);
  return n;
}

int64_t LeafOffset(const Shape& tuple, int64_t index) {
  int64_t n = 0;
  for (int64_t i = 0; i < index; ++i) n += LeafCount(tuple.elements()[static_cast<size_t>(i)]);
  return n;
}

namespace {

// Whether elements that are parts of one element of the other stand in its place: layouts are
// equal, but for the last dimension that one of them has more, which is the most minor one.
bool HasMemoryOf(const Shape& parts, const Shape& whole) {
  if (parts.is_row_major() && whole.is_row_major()) return true;
  const std::vector<int64_t>& order = parts.minor_to_major();
  if (parts.rank() == whole.rank()) return order == whole.minor_to_major();
  if (parts.rank() != whole.rank() + 1 || order.empty() || order[0] != whole.rank()) return false;
  return std::equal(order.begin() + 1, order.end(), whole.minor_to_major().begin(),
                    whole.minor_to_major().end());
}

}  // namespace

bool IsName(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
      return true;
    case Opcode::kBitcastConvert: {
      const Shape &from = i.operand(0)->shape(), &to = i.shape();
      if (from.byte_size() != to.byte_size()) return false;
      return from.rank() > to.rank() ? HasMemoryOf(from, to) : HasMemoryOf(to, from);
    }
    case Opcode::kBitcast:
      return i.shape().type() != i.operand(0)->shape().type() &&
             i.shape().dimensions() == i.operand(0)->shape().dimensions() &&
             i.shape().minor_to_major() == i.operand(0)->shape().minor_to_major();
    case Opcode::kReshape:
      return i.shape().is_row_major() && i.operand(0)->shape().is_row_major() &&
             i.shape().byte_size() == i.operand(0)->shape().byte_size();
    default:
      return false;
  }
}

bool KeepsLeaf(const Instruction& i, int64_t leaf) {
  if (i.opcode() != Opcode::kWhile) return false;
  const ir::Computation& body = *i.called(1);
  return OriginOf({body.root(), leaf}) == Leaf{body.parameter(0), leaf};
}

Leaf OriginOf(Leaf leaf) {
  while (IsName(*leaf.instruction) || KeepsLeaf(*leaf.instruction, leaf.index)) {
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
    std::vector<int64_t> first;  // leaves before each element of a tuple
    if (name.instruction->shape().is_tuple()) {
      first = {0};
      for (const Shape& element : name.instruction->shape().elements()) {
        first.push_back(first.back() + LeafCount(element));
      }
    }
    for (const Instruction* user : name.instruction->users()) {
      int64_t before = 0;  // leaves of the tuple before the operand
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == name.instruction) {
          if (user->opcode() == Opcode::kTuple) {
            names.push_back({user, before + name.index});
          } else if (user->opcode() == Opcode::kGetTupleElement) {
            size_t k = static_cast<size_t>(user->attributes().Int(Attr::kIndex));
            if (name.index >= first[k] && name.index < first[k + 1]) {
              names.push_back({user, name.index - first[k]});
            }
          } else if (IsName(*user)) {
            names.push_back({user, name.index});
          } else {
            result.readers.push_back({user, o, name.index});
            if (KeepsLeaf(*user, name.index)) names.push_back({user, name.index});
          }
        }
        if (user->opcode() == Opcode::kTuple) before += LeafCount(user->operand(o)->shape());
      }
    }
  }
  return result;
}

}  // namespace kiln::passes
