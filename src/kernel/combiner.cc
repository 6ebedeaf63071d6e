#include "kernel/combiner.h"

#include <unordered_map>

#include "base/strings.h"

namespace kiln::kernel {
namespace {

// Which kind an op on both arguments is. On pred, 'or' is maximum and add, 'and' minimum and
// multiply.
Combiner::Kind KindOf(Opcode opcode, ElementType type) {
  switch (opcode) {
    case Opcode::kAdd:
      return IsPred(type) ? Combiner::Kind::kOr : Combiner::Kind::kSum;
    case Opcode::kMultiply:
      return IsPred(type) ? Combiner::Kind::kAnd : Combiner::Kind::kProduct;
    case Opcode::kMaximum:
      return IsPred(type) ? Combiner::Kind::kOr : Combiner::Kind::kMax;
    case Opcode::kMinimum:
      return IsPred(type) ? Combiner::Kind::kAnd : Combiner::Kind::kMin;
    case Opcode::kAnd:
      return Combiner::Kind::kAnd;
    case Opcode::kOr:
      return Combiner::Kind::kOr;
    case Opcode::kXor:
      return Combiner::Kind::kXor;
    default:
      return Combiner::Kind::kGeneral;
  }
}

Node Argument(int number, ElementType type) {
  Node node{.kind = Node::Kind::kArgument, .type = type};
  node.result = number;
  return node;
}

}  // namespace

Combiner CombinerOf(Opcode opcode, ElementType type) {
  Combiner combiner;
  combiner.kind = KindOf(opcode, type);
  combiner.nodes = {Argument(0, type), Argument(1, type)};
  Node op{.kind = Node::Kind::kOp, .type = type, .opcode = opcode};
  op.operands = {0, 1};
  combiner.nodes.push_back(std::move(op));
  combiner.results = {2};
  return combiner;
}

Result<Combiner> CombinerOf(const ir::Computation& computation) {
  Combiner combiner;
  std::unordered_map<const ir::Instruction*, int> node_of;
  const ir::Instruction* root = computation.root();
  for (const auto& instruction : computation.instructions()) {
    const ir::Instruction& i = *instruction;
    if (i.opcode() == Opcode::kTuple && &i == root) continue;
    Node node{.kind = Node::Kind::kOp, .type = i.shape().type(), .opcode = i.opcode()};
    if (i.opcode() == Opcode::kParameter) {
      node =
          Argument(static_cast<int>(i.attributes().Int(Attr::kParameterNumber)), i.shape().type());
    } else if (i.opcode() == Opcode::kConstant) {
      node.kind = Node::Kind::kConstant;
      node.literal = i.shared_literal();
    } else if (IsElementwise(i.opcode()) && i.shape().is_scalar()) {
      node.direction = i.attributes().DirectionOf(Attr::kDirection);
      for (const ir::Instruction* operand : i.operands()) {
        node.operands.push_back(node_of.at(operand));
      }
    } else {
      return Unimplemented("reduce: its computation '", computation.name(), "' holds the op '",
                           OpcodeName(i.opcode()), "', which is not elementwise on scalars");
    }
    node_of[&i] = static_cast<int>(combiner.nodes.size());
    combiner.nodes.push_back(std::move(node));
  }
  if (root->opcode() == Opcode::kTuple) {
    for (const ir::Instruction* operand : root->operands()) {
      combiner.results.push_back(node_of.at(operand));
    }
  } else {
    combiner.results.push_back(node_of.at(root));
  }
  if (computation.parameters().size() == 2 && root->operand_count() == 2) {
    const ir::Instruction *a = computation.parameter(0), *b = computation.parameter(1);
    const ir::Instruction *x = root->operand(0), *y = root->operand(1);
    if (((x == a && y == b) || (x == b && y == a)) && root->shape().is_array() &&
        root->shape().type() == a->shape().type()) {
      combiner.kind = KindOf(root->opcode(), root->shape().type());
    }
  }
  return combiner;
}

}  // namespace kiln::kernel
