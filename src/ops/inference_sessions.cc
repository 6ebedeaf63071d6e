// Ops that run in sessions only. Sizes known at run time only are bounded dimensions.
#include <cstdint>

#include "base/integers.h"
#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

// The bounded dimension for at most as many elements as these dimensions have.
Result<Dimension> AtMost(const InferenceInput& input, std::span<const Dimension> dimensions) {
  int64_t bound = 1;
  bool is_empty = false;
  for (const Dimension& d : dimensions) {
    if (d.is_symbolic()) {
      return Unimplemented(Describe(input), "; the size of its result has no bound, as ", d,
                           " is not a number");
    }
    is_empty |= d.size() == 0;
    bound = SaturatingMultiply(bound, d.size());
  }
  return Dimension::Bounded(is_empty ? 0 : bound);
}

Status RequireName(const InferenceInput& input, Attr key) {
  if (!input.attributes.Text(key).empty()) return OkStatus();
  return Error(input, "; ", InfoOf(key).name, " is empty");
}

}  // namespace

Result<Shape> InferUnique(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  if (operand.rank() != 1) return Error(input, "; it must have one dimension");
  KILN_ASSIGN_OR_RETURN(Dimension count, AtMost(input, operand.dimensions()));
  if (count.size() > INT32_MAX) return Error(input, "; positions in it do not fit in an s32");
  return Shape::Tuple({Shape(operand.type(), std::vector<Dimension>{count}),
                       Shape(ElementType::kS32, operand.dimensions()),
                       Shape(ElementType::kS32, std::vector<Dimension>{count})});
}

Result<Shape> InferNonzero(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  KILN_ASSIGN_OR_RETURN(Dimension count, AtMost(input, operand.dimensions()));
  return Shape(ElementType::kS64, std::vector<Dimension>{count, operand.rank()});
}

Result<Shape> InferBooleanMask(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape &operand = OperandShape(input, 0), &mask = OperandShape(input, 1);
  if (!IsPred(mask.type())) return Error(input, "; the mask must be a pred");
  if (mask.rank() == 0) return Error(input, "; the mask must have a dimension at least");
  bool fits = mask.rank() <= operand.rank();
  for (int64_t d = 0; fits && d < mask.rank(); ++d) {
    fits = mask.dimension(d) == operand.dimension(d);
  }
  if (!fits) return Error(input, "; the mask must have the operand's first dimensions");
  KILN_ASSIGN_OR_RETURN(Dimension count, AtMost(input, mask.dimensions()));
  std::vector<Dimension> dimensions = {count};
  for (int64_t d = mask.rank(); d < operand.rank(); ++d) {
    dimensions.push_back(operand.dimension(d));
  }
  return Shape(operand.type(), std::move(dimensions));
}

Result<Shape> InferPassedThrough(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferAssert(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  if (!OperandShape(input, 0).SameTypeAndDimensions(Shape::Scalar(ElementType::kPred))) {
    return Error(input, "; the first must be pred[]");
  }
  return WithoutLayout(OperandShape(input, 1));
}

Result<Shape> InferHostCallback(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireName(input, Attr::kCallback));
  if (!input.declared) return Error(input, "; the result's shape is missing");
  const Shape& declared = *input.declared;
  bool fits = declared.is_array() || declared.is_tuple();
  for (const Shape& element : declared.elements()) fits &= element.is_array();
  if (!fits) {
    return Error(input, "; the result's shape is ", declared,
                 "; it must be an array or a tuple of arrays");
  }
  return WithoutLayout(declared);
}

Result<Shape> InferVariable(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireName(input, Attr::kVariable));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  return WithoutLayout(*input.declared);
}

Result<Shape> InferAssign(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireName(input, Attr::kVariable));
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  return WithoutLayout(OperandShape(input, 0));
}

}  // namespace kiln::rules
