// Elementwise ops: the result has the operands' dimensions.
#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

Shape WithType(const Shape& shape, ElementType type) {
  Shape result = WithoutLayout(shape);
  result.set_type(type);
  return result;
}

Status RequireEqual(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  if (!OperandShape(input, 0).SameTypeAndDimensions(OperandShape(input, 1))) {
    return Error(input, "; they must be equal");
  }
  return OkStatus();
}

}  // namespace

Result<Shape> InferUnary(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferPredicate(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  return WithType(OperandShape(input, 0), ElementType::kPred);
}

Result<Shape> InferConvert(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  return WithType(OperandShape(input, 0), input.declared->type());
}

Result<Shape> InferBinary(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireEqual(input));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferCompare(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireEqual(input));
  Direction direction = input.attributes.DirectionOf(Attr::kDirection);
  if (IsComplex(OperandShape(input, 0).type()) && direction != Direction::kEq &&
      direction != Direction::kNe) {
    return Error(input, "; complex numbers have no order ", DirectionName(direction));
  }
  return WithType(OperandShape(input, 0), ElementType::kPred);
}

Result<Shape> InferClamp(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 1);
  for (int64_t i : {0, 2}) {
    const Shape& bound = OperandShape(input, i);
    if (bound.type() != operand.type() || !(bound.is_scalar() || bound.SameDimensions(operand))) {
      return Error(input, "; min and max must be scalars of the operand's type or equal to it");
    }
  }
  return WithoutLayout(operand);
}

Result<Shape> InferSelect(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& pred = OperandShape(input, 0);
  const Shape& on_true = OperandShape(input, 1);
  if (!on_true.SameTypeAndDimensions(OperandShape(input, 2))) {
    return Error(input, "; the second and the third must be equal");
  }
  if (!IsPred(pred.type()) || !(pred.is_scalar() || pred.SameDimensions(on_true))) {
    return Error(input, "; the first must be a pred scalar or pred of the others' dimensions");
  }
  return WithoutLayout(on_true);
}

}  // namespace kiln::rules
