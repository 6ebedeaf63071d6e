#include "stablehlo/import/folds.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

Result<Values> Reduce(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints dimensions, op.IntList("dimensions"));
  return Fold(op, Opcode::kReduce, {{Attr::kDimensions, std::move(dimensions)}});
}

Result<Values> Sort(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t dimension, op.Int("dimension", -1));
  KILN_ASSIGN_OR_RETURN(bool stable, op.Bool("is_stable"));
  if (dimension < 0) dimension += op.shape(0).rank();
  std::vector<Shape> scalars;
  for (const Instruction* operand : op.operands) {
    scalars.insert(scalars.end(), 2, Shape::Scalar(operand->shape().type()));
  }
  KILN_ASSIGN_OR_RETURN(
      ir::Computation * comparator,
      op.importer.ImportRegion(*op.operation.regions[0], op.body, "comparator", scalars));
  Attributes attributes = {{Attr::kDimensions, Ints{dimension}}};
  if (stable) attributes.Set(Attr::kIsStable, true);
  return op.Unpack(
      op.b.Add(Opcode::kSort, op.operands, std::move(attributes), std::nullopt, {comparator}));
}

Result<Values> Map(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints dimensions, op.IntList("dimensions"));
  std::vector<Shape> scalars;
  for (const Instruction* operand : op.operands) {
    scalars.push_back(Shape::Scalar(operand->shape().type()));
  }
  KILN_ASSIGN_OR_RETURN(
      ir::Computation * function,
      op.importer.ImportRegion(*op.operation.regions[0], op.body, "map", scalars));
  return op.One(op.b.Add(Opcode::kMap, op.operands, {{Attr::kDimensions, std::move(dimensions)}},
                         std::nullopt, {function}));
}

}  // namespace

Result<Instruction*> ConvertTo(Op& op, Instruction* x, const mlir::Type& from,
                               const mlir::Type& to) {
  const mlir::Quantization *is = QuantizationOf(from), *wanted = QuantizationOf(to);
  if (is && wanted) {
    if (from.element == to.element) return x;
    return Quantise(op.b, Dequantise(op.b, x, *is), *wanted);
  }
  if (!to.is_tensor() || is || wanted) {
    return InvalidArgument("found an argument of ", to, " in the region; expected that of ", from);
  }
  KILN_ASSIGN_OR_RETURN(ElementType type, ElementTypeOf(*to.element));
  return op.b.Convert(x, type);
}

Result<Values> Fold(Op& op, Opcode opcode, Attributes attributes) {
  const size_t n = op.result_count();
  const bool scatter = opcode == Opcode::kScatter;
  const bool pairs = scatter || opcode == Opcode::kReduce || opcode == Opcode::kReduceWindow;
  const size_t expected = scatter ? 2 * n + 1 : pairs ? 2 * n : n;
  if (op.operands.size() != expected) {
    return InvalidArgument("found ", op.operands.size(), " operands for ", n, " results; expected ",
                           expected);
  }
  const mlir::Region& region = *op.operation.regions[0];
  KILN_ASSIGN_OR_RETURN(const mlir::Block* block, op.importer.BlockOf(region, 2 * n));
  Values operands = op.operands;
  std::vector<Shape> scalars(2 * n);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (scatter && i == n) continue;
    const size_t k = scatter && i > n ? i - n - 1 : i % n;
    const mlir::Type& to = *block->arguments[k]->type;
    KILN_ASSIGN_OR_RETURN(operands[i], ConvertTo(op, operands[i], op.operand_type(i), to));
    KILN_RETURN_IF_ERROR(op.b.status());
    scalars[k] = scalars[k + n] = Shape::Scalar(operands[i]->shape().type());
  }
  KILN_ASSIGN_OR_RETURN(ir::Computation * computation,
                        op.importer.ImportRegion(region, op.body, "region", scalars));
  return op.Unpack(
      op.b.Add(opcode, std::move(operands), std::move(attributes), std::nullopt, {computation}));
}

static constexpr Row kRows[] = {
    {"stablehlo.reduce", Reduce, {2, -1}, kSome, 1, Quantised::kStorage},
    {"stablehlo.sort", Sort, kSome, kSome, 1, Quantised::kStorage},
    {"stablehlo.map", Map, kSome, 1, 1, Quantised::kStorage},
};

std::span<const Row> FoldRows() { return kRows; }

}  // namespace kiln::stablehlo
