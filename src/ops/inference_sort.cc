// Ops that put elements in order.
#include "ops/inference_rules.h"

namespace kiln::rules {

Result<Shape> InferSort(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& first = OperandShape(input, 0);
  std::vector<Shape> scalars, results;
  for (const Shape* operand : input.operands) {
    if (!operand->SameDimensions(first)) {
      return Error(input, "; the operands' dimensions must be equal");
    }
    // Of each operand the left element, then the right one.
    scalars.insert(scalars.end(), 2, Shape::Scalar(operand->type()));
    results.push_back(WithoutLayout(*operand));
  }
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, first.rank()));
  if (dimensions.size() != 1) {
    return Error(input, "; dimensions has ", dimensions.size(),
                 " numbers; expected one, the dimension to sort along");
  }
  const ProgramShape& comparator = input.called[0];
  bool fits = comparator.parameters.size() == scalars.size();
  for (size_t i = 0; fits && i < scalars.size(); ++i) {
    fits = comparator.parameters[i].SameTypeAndDimensions(scalars[i]);
  }
  if (!fits) {
    return Error(input, "; the computation takes ", ShapeList(comparator.parameters), "; expected ",
                 ShapeList(scalars), ", of each operand the left element and the right one");
  }
  Shape pred = Shape::Scalar(ElementType::kPred);
  if (!comparator.result.SameTypeAndDimensions(pred)) {
    return Error(input, "; the computation gives ", comparator.result, "; expected ", pred);
  }
  if (results.size() == 1) return std::move(results[0]);
  return Shape::Tuple(std::move(results));
}

Result<Shape> InferTopK(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  if (operand.rank() == 0) return Error(input, "; it must have a dimension");
  std::vector<Dimension> dimensions = operand.dimensions();
  int64_t k = input.attributes.Int(Attr::kK);
  if (k < 0 || (!dimensions.back().is_symbolic() && k > dimensions.back().size())) {
    return Error(input, "; k is ", k, "; expected 0 to ", dimensions.back(),
                 ", the size of the last dimension");
  }
  if (!dimensions.back().is_symbolic() && dimensions.back().size() > INT32_MAX) {
    return Error(input, "; positions in the last dimension must fit s32");
  }
  dimensions.back() = k;
  std::vector<Shape> results = {Shape(operand.type(), dimensions),
                                Shape(ElementType::kS32, dimensions)};
  return Shape::Tuple(std::move(results));
}

}  // namespace kiln::rules
