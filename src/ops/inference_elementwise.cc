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

// A real number from a complex one, such as a part.
Result<Shape> InferPart(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  return WithType(operand, PartOf(operand.type()));
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

// The scalar computation has the operands' types.
Result<Shape> InferMap(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& first = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  bool all = static_cast<int64_t>(dimensions.size()) == first.rank();
  for (size_t d = 0; d < dimensions.size(); ++d) all &= dimensions[d] == static_cast<int64_t>(d);
  if (!all) {
    return Error(input, "; dimensions must be all of the operand's ", first.rank(), ", in order");
  }
  std::vector<Shape> scalars;
  for (const Shape* operand : input.operands) {
    if (!operand->SameDimensions(first)) {
      return Error(input, "; the operands' dimensions must be equal");
    }
    scalars.push_back(Shape::Scalar(operand->type()));
  }
  const ProgramShape& function = input.called[0];
  bool fits = function.parameters.size() == scalars.size();
  for (size_t i = 0; fits && i < scalars.size(); ++i) {
    fits = function.parameters[i].SameTypeAndDimensions(scalars[i]);
  }
  if (!fits) {
    return Error(input, "; the computation takes ", ShapeList(function.parameters), "; expected ",
                 ShapeList(scalars));
  }
  if (!function.result.is_scalar()) {
    return Error(input, "; the computation gives ", function.result, "; expected a scalar");
  }
  return WithType(first, function.result.type());
}

Result<Shape> InferBinary(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireEqual(input));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferComplex(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireEqual(input));
  const Shape& operand = OperandShape(input, 0);
  if (!IsComplex(ComplexOf(operand.type()))) {
    return Error(input, "; the parts of complex numbers are of f32 or f64");
  }
  return WithType(operand, ComplexOf(operand.type()));
}

Result<Shape> InferCompare(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireEqual(input));
  Direction direction = input.attributes.DirectionOf(Attr::kDirection);
  if (IsComplex(OperandShape(input, 0).type()) && direction != Direction::kEq &&
      direction != Direction::kNe) {
    return Error(input, "; complex numbers have no order ", DirectionName(direction));
  }
  if (input.attributes.Has(Attr::kOrderType)) {
    const std::string& type = input.attributes.Text(Attr::kOrderType);
    if (type != "TOTALORDER" || !IsFloat(OperandShape(input, 0).type())) {
      return Error(input, "; attribute 'type' is ", type,
                   "; it must be TOTALORDER, of floats, or be left out");
    }
  }
  return WithType(OperandShape(input, 0), ElementType::kPred);
}

Result<Shape> InferStochasticConvert(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireArrays(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape &operand = OperandShape(input, 0), &random = OperandShape(input, 1);
  if (!IsFloat(operand.type()) || !IsUnsigned(random.type()) || !IsInteger(random.type()) ||
      BitWidth(operand.type()) != BitWidth(random.type()) || !random.SameDimensions(operand)) {
    return Error(input,
                 "; they must be floats and unsigned integers of the same width and "
                 "dimensions");
  }
  if (!IsSigned(input.declared->type()) || !IsInteger(input.declared->type())) {
    return Error(input, "; the result is of type ", TypeName(input.declared->type()),
                 "; it must be a signed integer");
  }
  return WithType(operand, input.declared->type());
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

Result<Shape> InferReducePrecision(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  int64_t exponent = input.attributes.Int(Attr::kExponentBits);
  int64_t mantissa = input.attributes.Int(Attr::kMantissaBits);
  if (exponent < 1) return Error(input, "; exponent_bits is ", exponent, "; expected at least 1");
  if (mantissa < 0) return Error(input, "; mantissa_bits is ", mantissa, "; expected at least 0");
  return WithoutLayout(OperandShape(input, 0));
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
