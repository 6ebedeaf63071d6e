#include "kernel/combiner.h"

#include "kernel/region.h"

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
  op.operands = {NodeId(0), NodeId(1)};
  combiner.results = {combiner.nodes.Add(std::move(op))};
  return combiner;
}

ElementType AccumulatorOf(const Combiner& combiner, ElementType type) {
  bool rounds = combiner.kind == Combiner::Kind::kSum || combiner.kind == Combiner::Kind::kProduct;
  return IsHalf(type) && rounds ? ElementType::kF32 : type;
}

Result<Combiner> CombinerOf(const ir::Instruction& user) {
  const ir::Computation& computation = *user.called(0);
  Combiner combiner;
  auto add = [&](Node node) { return combiner.nodes.Add(std::move(node)); };
  auto argument = [&](int64_t number) {
    return add(Argument(static_cast<int>(number), computation.parameter(number)->shape().type()));
  };
  auto results = AddRegion(computation, argument, add);
  if (!results.ok()) return results.status().WithContext(OpcodeName(user.opcode()));
  combiner.results = *std::move(results);
  const ir::Instruction* root = computation.root();
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
