#include "ir/host_call.h"

#include <algorithm>

#include "base/strings.h"
#include "ir/analysis/alias.h"

namespace kiln::ir {
namespace {

void AppendArrays(const Shape& shape, std::vector<Shape>& arrays) {
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    if (leaf.is_array()) arrays.push_back(leaf);
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

bool IsRowMajor(const Shape& shape) {
  return shape.is_row_major() && std::ranges::all_of(shape.elements(), IsRowMajor);
}

bool HasCallLayouts(const Instruction& call) {
  return call.opcode() == Opcode::kCustomCall &&
         ApiVersionByName(call.attributes().Text(Attr::kApiVersion)) == kTypedApiVersion;
}

CallSignature CallSignatureOf(const Instruction& instruction) {
  CallSignature signature;
  for (const Instruction* operand : instruction.operands()) {
    AppendArrays(operand->shape(), signature.operands);
  }
  AppendArrays(instruction.shape(), signature.results);
  for (std::vector<Shape>* shapes : {&signature.operands, &signature.results}) {
    for (Shape& shape : *shapes) {
      if (!HasCallLayouts(instruction)) shape.set_minor_to_major({});
    }
  }
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
      // Without a known one it is the original.
      signature.api_version =
          std::max<int64_t>(ApiVersionByName(a.Text(Attr::kApiVersion)).value_or(1), 1);
      signature.has_side_effect = a.Bool(Attr::kCustomCallHasSideEffect);
      signature.aliases = AliasedArrays(instruction);
  }
  return signature;
}

}  // namespace kiln::ir
