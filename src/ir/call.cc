#include "ir/call.h"

#include "base/strings.h"

namespace kiln::ir {
namespace {

// Arrays and tokens in a shape.
int64_t CountLeaves(const Shape& shape) {
  int64_t count = 0;
  ForEachLeaf(shape, [&](const Shape&, std::span<const int64_t>) { ++count; });
  return count;
}

// The number of the first leaf of the part that a path names.
int64_t LeafAt(const Shape& shape, const Ints& index) {
  const Shape* at = &shape;
  int64_t leaf = 0;
  for (int64_t i : index) {
    for (int64_t k = 0; k < i; ++k) leaf += CountLeaves(at->elements()[static_cast<size_t>(k)]);
    at = &at->elements()[static_cast<size_t>(i)];
  }
  return leaf;
}

void AppendArrays(const Shape& shape, std::vector<Shape>& arrays) {
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    if (leaf.is_array()) arrays.emplace_back(leaf.type(), leaf.dimensions());
  });
}

}  // namespace

bool IsCall(const Instruction& instruction) { return HasTrait(instruction.opcode(), kLibraryCall); }

std::string CallTarget(const Instruction& instruction) {
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

std::vector<CallAlias> CallAliases(const Instruction& call) {
  std::vector<CallAlias> aliases;
  for (const OperandAlias& alias : call.attributes().Aliases(Attr::kOutputToOperandAliasing)) {
    const Shape& operand = call.operand(alias.operand)->shape();
    aliases.push_back({LeafAt(call.shape(), alias.output_index), alias.operand,
                       LeafAt(operand, alias.operand_index)});
  }
  return aliases;
}

std::vector<std::pair<size_t, size_t>> AliasedArrays(const Instruction& call) {
  // Of arrays in a shape before leaf `end`.
  auto count = [](const Shape& shape, int64_t end) {
    size_t arrays = 0;
    int64_t leaf = 0;
    ForEachLeaf(shape, [&](const Shape& s, std::span<const int64_t>) {
      if (leaf++ < end && s.is_array()) ++arrays;
    });
    return arrays;
  };
  std::vector<std::pair<size_t, size_t>> arrays;
  for (const CallAlias& alias : CallAliases(call)) {
    size_t operand = 0;
    for (int64_t o = 0; o < alias.operand; ++o)
      operand += count(call.operand(o)->shape(), INT64_MAX);
    operand += count(call.operand(alias.operand)->shape(), alias.leaf);
    arrays.push_back({count(call.shape(), alias.output), operand});
  }
  return arrays;
}

int64_t AliasedOperand(const Instruction& call, int64_t output) {
  const auto& aliases = call.attributes().Aliases(Attr::kOutputToOperandAliasing);
  if (aliases.empty()) return -1;
  Ints path;
  int64_t leaf = 0;
  ForEachLeaf(call.shape(), [&](const Shape&, std::span<const int64_t> index) {
    if (leaf++ == output) path.assign(index.begin(), index.end());
  });
  for (const OperandAlias& alias : aliases) {
    if (alias.output_index == path && alias.operand_index.empty()) return alias.operand;
  }
  return -1;
}

bool MayShareInCall(const Instruction& call, int64_t operand, int64_t output) {
  switch (call.opcode()) {
    case Opcode::kCholesky:
      return true;
    case Opcode::kFft:
      return call.shape().type() == call.operand(0)->shape().type();
    case Opcode::kTriangularSolve:
      return operand == 1;
    default:
      return AliasedOperand(call, output) == operand;
  }
}

}  // namespace kiln::ir
