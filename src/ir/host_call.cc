#include "ir/host_call.h"

#include "base/strings.h"

namespace kiln::ir {
namespace {

void AppendArrays(const Shape& shape, std::vector<Shape>& arrays) {
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    if (leaf.is_array()) arrays.emplace_back(leaf.type(), leaf.dimensions());
  });
}

}  // namespace

bool IsHostCall(const Instruction& instruction) {
  return HasTrait(instruction.opcode(), kLibraryCall);
}

std::string HostCallTarget(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kCustomCall) {
    return instruction.attributes().Text(Attr::kCustomCallTarget);
  }
  return Cat("kiln.", OpcodeName(instruction.opcode()));
}

CallSignature CallSignatureOf(const Instruction& instruction) {
  CallSignature signature;
  for (const Instruction* operand : instruction.operands()) {
    AppendArrays(operand->shape(), signature.operands);
  }
  AppendArrays(instruction.shape(), signature.results);
  const Attributes& a = instruction.attributes();
  auto flag = [&](Attr key) { return a.Bool(key) ? 1 : 0; };
  switch (instruction.opcode()) {
    case Opcode::kCholesky:
      signature.attributes = Cat("lower=", flag(Attr::kLower));
      break;
    case Opcode::kFft:
      signature.attributes =
          Cat("type=", a.Text(Attr::kFftType), " length=", Join(a.IntsOf(Attr::kFftLength), ","));
      break;
    case Opcode::kRngGetAndUpdateState:
      signature.attributes = Cat("delta=", a.Int(Attr::kDelta));
      break;
    case Opcode::kTriangularSolve:
      signature.attributes = Cat("left_side=", flag(Attr::kLeftSide), " lower=", flag(Attr::kLower),
                                 " unit_diagonal=", flag(Attr::kUnitDiagonal),
                                 " transpose_a=", a.Text(Attr::kTransposeA));
      break;
    default:
      signature.attributes = a.Text(Attr::kBackendConfig);
  }
  return signature;
}

}  // namespace kiln::ir
