// Operations on elements, and on matrices, that are more than one op of HLO, or one with results of
// its own.
#include "stablehlo/import/op.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

Result<Values> Compare(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string direction, op.Word("comparison_direction"));
  KILN_ASSIGN_OR_RETURN(std::string type, op.Word("compare_type", "NOTYPE"));
  const std::optional<Direction> order = DirectionByName(direction);
  if (!order) return InvalidArgument("comparison_direction is ", direction);
  Attributes attributes = {{Attr::kDirection, *order}};
  // Other comparison types only repeat the type of the operands.
  if (type == "TOTALORDER" && IsFloat(op.type(0))) attributes.Set(Attr::kOrderType, type);
  return op.One(op.b.Add(Opcode::kCompare, op.operands, std::move(attributes)));
}

Result<Values> BatchNorm(Op& op, Opcode opcode) {
  KILN_ASSIGN_OR_RETURN(double epsilon, op.Float("epsilon"));
  KILN_ASSIGN_OR_RETURN(int64_t feature, op.Int("feature_index"));
  return op.Unpack(
      op.b.Add(opcode, op.operands, {{Attr::kEpsilon, epsilon}, {Attr::kFeatureIndex, feature}}));
}

Result<Values> BatchNormTraining(Op& op) { return BatchNorm(op, Opcode::kBatchNormTraining); }
Result<Values> BatchNormGrad(Op& op) { return BatchNorm(op, Opcode::kBatchNormGrad); }

// The third operand is the result's shape, which its type says, too.
Result<Values> Rng(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string distribution, op.Word("rng_distribution"));
  Shape shape;
  if (op.HasShape(0)) {
    KILN_ASSIGN_OR_RETURN(shape, op.ResultShape(0));
  } else {
    KILN_ASSIGN_OR_RETURN(Ints sizes, op.KnownInts(2, "the shape"));
    shape = Shape(op.type(0), sizes);
  }
  if (distribution != "UNIFORM" && distribution != "NORMAL") {
    return InvalidArgument("rng_distribution is ", distribution, "; expected UNIFORM or NORMAL");
  }
  const std::string hlo = distribution == "NORMAL" ? "rng_normal" : "rng_uniform";
  return op.One(
      op.b.Add(Opcode::kRng, {op.operand(0), op.operand(1)}, {{Attr::kDistribution, hlo}}, shape));
}

Result<Values> RngBitGenerator(Op& op) {
  KILN_ASSIGN_OR_RETURN(Shape bits, op.ResultShape(1));
  return RngBitGeneratorOf(op, std::move(bits));
}

constexpr Quantised kExpressed = Quantised::kExpressed;

constexpr Row kRows[] = {
    {"stablehlo.compare", Compare, 2, 1, 0, kExpressed},
    {"stablehlo.batch_norm_training", BatchNormTraining, 3, 3, 0, kExpressed},
    {"stablehlo.batch_norm_grad", BatchNormGrad, 5, 3, 0, kExpressed},
    {"stablehlo.rng", Rng, 3, 1},
    {"stablehlo.rng_bit_generator", RngBitGenerator, 1, 2},
};

}  // namespace

Result<Values> RngBitGeneratorOf(Op& op, Shape bits) {
  KILN_ASSIGN_OR_RETURN(std::string algorithm, op.Word("rng_algorithm"));
  KILN_ASSIGN_OR_RETURN(Shape state, op.ResultShape(0));
  const std::string hlo = algorithm == "DEFAULT"     ? "rng_default"
                          : algorithm == "THREE_FRY" ? "rng_three_fry"
                          : algorithm == "PHILOX"    ? "rng_philox"
                                                     : algorithm;
  const ElementType wanted = bits.is_array() ? bits.type() : ElementType::kInvalid;
  if (bits.is_array() && IsFloat(wanted)) {
    const std::optional<ElementType> same_width = TypeByName(Cat("u", BitWidth(wanted)));
    if (same_width) bits.set_type(*same_width);
  }
  const Shape whole = Shape::Tuple({state, bits});
  Values values = op.Unpack(
      op.b.Add(Opcode::kRngBitGenerator, {op.operand(0)}, {{Attr::kAlgorithm, hlo}}, whole));
  if (bits.is_array() && bits.type() != wanted) {
    const Shape declared = Shape::Scalar(wanted);
    values[1] = op.b.Add(Opcode::kBitcastConvert, {values[1]}, {}, declared);
  }
  return values;
}

std::span<const Row> ArithmeticRows() { return kRows; }

}  // namespace kiln::stablehlo
