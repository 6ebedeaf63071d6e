// bitcast-convert: the same bits as elements of another type.
#include "kernel/values.h"

namespace kiln::kernel {

using ir::Instruction;

namespace {

int64_t BitsOf(ElementType type) { return IsPred(type) ? 1 : BitWidth(type); }

// The unsigned type whose registers hold so many bits.
Result<ElementType> WordOf(int64_t bits) {
  if (bits <= 8) return ElementType::kU8;
  if (bits == 16) return ElementType::kU16;
  if (bits == 32) return ElementType::kU32;
  if (bits == 64) return ElementType::kU64;
  return Unimplemented("bitcast-convert: elements of ", bits, " bits have no compiled code");
}

}  // namespace

NodeId StageValues::Number(ElementType type, int64_t value) {
  Node node{.kind = Node::Kind::kIndex, .type = type};
  node.index = value;
  return Add(std::move(node));
}

// An element as an unsigned number of at least its bits.
Result<NodeId> StageValues::BitsOfNode(NodeId node, ElementType type, ElementType word) {
  if (IsPred(type)) return Op(Opcode::kConvert, word, {node});
  KILN_ASSIGN_OR_RETURN(ElementType own, WordOf(BitsOf(type)));
  NodeId bits = own == type ? node : Op(Opcode::kBitcastConvert, own, {node});
  if (BitsOf(type) < 8) {
    bits = Op(Opcode::kAnd, own, {bits, Number(own, (int64_t{1} << BitsOf(type)) - 1)});
  }
  return own == word ? bits : Op(Opcode::kConvert, word, {bits});
}

// To a narrower type: element i of the last dimension is bits [i*w, (i+1)*w). To a wider one: the
// parts shifted to where they belong.
Result<NodeId> StageValues::BitcastConvert(const Instruction& instruction,
                                           const std::vector<Index>& index, NodeId guard) {
  const Instruction& operand = *instruction.operand(0);
  ElementType from = operand.shape().type(), to = instruction.shape().type();
  int64_t from_bits = BitsOf(from), to_bits = BitsOf(to);
  if (from_bits == to_bits) {
    KILN_ASSIGN_OR_RETURN(NodeId value, At(operand, index, guard));
    return from == to ? value : Op(Opcode::kBitcastConvert, to, {value});
  }
  KILN_ASSIGN_OR_RETURN(ElementType word, WordOf(std::max(from_bits, to_bits)));
  KILN_ASSIGN_OR_RETURN(ElementType narrow, WordOf(std::min(from_bits, to_bits)));
  std::vector<Index> at = index;
  if (to_bits < from_bits) {
    Node shift{.kind = Node::Kind::kIndex, .type = word};
    shift.index = at.back() * to_bits;
    at.pop_back();
    KILN_ASSIGN_OR_RETURN(NodeId value, At(operand, at, guard));
    KILN_ASSIGN_OR_RETURN(NodeId bits, BitsOfNode(value, from, word));
    NodeId low = Op(Opcode::kShiftRightLogical, word, {bits, Add(std::move(shift))});
    if (IsPred(to)) {
      NodeId one = Op(Opcode::kAnd, word, {low, Number(word, 1)});
      return Op(Opcode::kConvert, to, {one});
    }
    NodeId part = Op(Opcode::kConvert, narrow, {low});
    return narrow == to ? part : Op(Opcode::kBitcastConvert, to, {part});
  }
  NodeId result;
  for (int64_t k = 0; k < to_bits / from_bits; ++k) {
    at = index;
    at.push_back(k);
    KILN_ASSIGN_OR_RETURN(NodeId value, At(operand, at, guard));
    KILN_ASSIGN_OR_RETURN(NodeId bits, BitsOfNode(value, from, word));
    if (k > 0) {
      bits = Op(Opcode::kShiftLeft, word, {bits, Number(word, k * from_bits)});
      result = Op(Opcode::kOr, word, {result, bits});
    } else {
      result = bits;
    }
  }
  return word == to ? result : Op(Opcode::kBitcastConvert, to, {result});
}

}  // namespace kiln::kernel
