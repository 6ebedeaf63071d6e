#include "ir/reducer.h"

#include "ir/builder.h"
#include "tensor/extremes.h"

namespace kiln::ir {

Result<Computation*> AddReducer(Module& module, Opcode opcode, ElementType type,
                                std::string_view name) {
  Computation* reducer = module.AddComputation(name.empty() ? OpcodeName(opcode) : name);
  Builder b(reducer);
  Instruction *x = b.Parameter(Shape::Scalar(type)), *y = b.Parameter(Shape::Scalar(type));
  reducer->set_root(b.Binary(opcode, x, y));
  KILN_RETURN_IF_ERROR(b.status());
  return reducer;
}

std::optional<Opcode> ReducerOf(const Computation& computation) {
  const Instruction* root = computation.root();
  if (computation.parameters().size() != 2 || root->operand_count() != 2 ||
      !HasTrait(root->opcode(), kCommutative) || root->operand(0) == root->operand(1)) {
    return std::nullopt;
  }
  for (const Instruction* operand : root->operands()) {
    if (operand->opcode() != Opcode::kParameter) return std::nullopt;
  }
  return root->opcode();
}

std::optional<Literal> IdentityOf(Opcode opcode, ElementType type) {
  switch (opcode) {
    case Opcode::kAdd:
      return Literal::ScalarOf(type, IsFloat(type) ? -0.0 : 0.0);
    case Opcode::kMultiply:
      return Literal::ScalarOf(type, 1);
    case Opcode::kOr:
    case Opcode::kXor:
      return Literal::ScalarOf(type, 0);
    case Opcode::kAnd:
      return AllOnes(type);
    case Opcode::kMaximum:
      return Lowest(type);
    case Opcode::kMinimum:
      return Highest(type);
    default:
      return std::nullopt;
  }
}

}  // namespace kiln::ir
