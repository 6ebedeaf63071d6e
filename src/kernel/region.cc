#include "kernel/region.h"

#include <algorithm>
#include <unordered_map>

namespace kiln::kernel {

using ir::Computation;
using ir::Instruction;

namespace {

bool IsPart(const Instruction& i) {
  if (i.opcode() == Opcode::kTuple) return i.IsRoot();
  if (!i.shape().is_scalar()) return false;
  if (IsSameScalar(i)) return true;
  return i.opcode() == Opcode::kParameter || i.IsConstant() || IsElementwise(i.opcode()) ||
         ir::IsScalarBitcast(i);
}

}  // namespace

bool IsSameScalar(const Instruction& i) {
  if (!IsView(i.opcode()) && i.opcode() != Opcode::kReverse) return false;
  return i.shape().is_scalar() && i.operand(0)->shape() == i.shape();
}

Node ElementwiseNode(const Instruction& instruction) {
  Node node{
      .kind = Node::Kind::kOp, .type = instruction.shape().type(), .opcode = instruction.opcode()};
  const Attributes& a = instruction.attributes();
  node.direction = a.DirectionOf(Attr::kDirection);
  node.total_order = a.Has(Attr::kOrderType);
  node.exponent_bits = a.Int(Attr::kExponentBits);
  node.mantissa_bits = a.Int(Attr::kMantissaBits);
  return node;
}

bool IsScalarRegion(const Computation& computation) {
  return std::ranges::all_of(computation.instructions(), [](const auto& i) { return IsPart(*i); });
}

Result<std::vector<NodeId>> AddRegion(const Computation& computation,
                                      const std::function<NodeId(int64_t)>& argument,
                                      const std::function<NodeId(Node)>& add) {
  std::unordered_map<const Instruction*, NodeId> node_of;
  for (Instruction* instruction : computation.instructions()) {
    const Instruction& i = *instruction;
    if (!IsPart(i)) {
      return Unimplemented("computation '", computation.name(), "' holds the op '",
                           OpcodeName(i.opcode()), "', which is not elementwise on scalars");
    }
    if (i.opcode() == Opcode::kTuple) continue;
    if (i.opcode() == Opcode::kParameter) {
      node_of[&i] = argument(i.attributes().Int(Attr::kParameterNumber));
      continue;
    }
    if (IsSameScalar(i)) {
      node_of[&i] = node_of.at(i.operand(0));
      continue;
    }
    Node node = ElementwiseNode(i);
    if (i.IsConstant()) {
      node.kind = Node::Kind::kConstant;
      node.literal = i.shared_literal();
    }
    for (const Instruction* operand : i.operands()) node.operands.push_back(node_of.at(operand));
    node_of[&i] = add(std::move(node));
  }
  std::vector<NodeId> results;
  const Instruction* root = computation.root();
  if (root->opcode() == Opcode::kTuple) {
    for (const Instruction* operand : root->operands()) results.push_back(node_of.at(operand));
  } else {
    results.push_back(node_of.at(root));
  }
  return results;
}

}  // namespace kiln::kernel
