// Tuples, and ops that run other computations.
#include <algorithm>

#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

Status RequireArguments(const InferenceInput& input, std::string_view what,
                        const ProgramShape& computation, std::span<const Shape* const> arguments) {
  bool fits = computation.parameters.size() == arguments.size();
  for (size_t i = 0; fits && i < arguments.size(); ++i) {
    fits = computation.parameters[i].SameTypeAndDimensions(*arguments[i]);
  }
  if (fits) return OkStatus();
  return Error(input, "; ", what, " takes ", ShapeList(computation.parameters),
               "; the shapes must be equal");
}

}  // namespace

Result<Shape> InferTuple(const InferenceInput& input) {
  std::vector<Shape> elements;
  elements.reserve(input.operands.size());
  for (const Shape* operand : input.operands) elements.push_back(*operand);
  return Shape::Tuple(std::move(elements));
}

Result<Shape> InferGetTupleElement(const InferenceInput& input) {
  const Shape& operand = OperandShape(input, 0);
  if (!operand.is_tuple()) return Error(input, "; it must be a tuple");
  int64_t index = input.attributes.Int(Attr::kIndex);
  int64_t count = static_cast<int64_t>(operand.elements().size());
  if (index < 0 || index >= count) {
    return Error(input, "; index is ", index, "; expected 0 to below ", count);
  }
  return operand.elements()[index];
}

Result<Shape> InferOptBarrier(const InferenceInput& input) { return OperandShape(input, 0); }

Result<Shape> InferCall(const InferenceInput& input) {
  constexpr std::string_view kKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
  if (const AttrValue* kind = input.attributes.Find(Attr::kFusionKind)) {
    if (std::find(std::begin(kKinds), std::end(kKinds), std::get<std::string>(*kind)) ==
        std::end(kKinds)) {
      return Error(input, "; kind is ", std::get<std::string>(*kind), "; expected ",
                   Join(kKinds, ", "));
    }
  }
  const ProgramShape& computation = input.called[0];
  KILN_RETURN_IF_ERROR(RequireArguments(input, "the computation", computation, input.operands));
  return computation.result;
}

Result<Shape> InferConditional(const InferenceInput& input) {
  const Shape& index = OperandShape(input, 0);
  size_t branches = input.called.size();
  if (!index.is_scalar() ||
      !(index.type() == ElementType::kPred || index.type() == ElementType::kS32)) {
    return Error(input, "; the first must be pred[] or s32[]");
  }
  if (IsPred(index.type()) && branches != 2) {
    return Error(input, "; there are ", branches, " branches; a pred chooses between 2");
  }
  if (input.operands.size() != branches + 1) {
    return Error(input, "; there are ", branches, " branches; each takes one operand");
  }
  for (size_t i = 0; i < branches; ++i) {
    KILN_RETURN_IF_ERROR(RequireArguments(input, Cat("branch ", i), input.called[i],
                                          input.operands.subspan(i + 1, 1)));
    if (!input.called[i].result.SameTypeAndDimensions(input.called[0].result)) {
      return Error(input, "; branch 0 gives ", input.called[0].result, " and branch ", i, " gives ",
                   input.called[i].result, "; they must be equal");
    }
  }
  return input.called[0].result;
}

Result<Shape> InferWhile(const InferenceInput& input) {
  const Shape& operand = OperandShape(input, 0);
  const ProgramShape& condition = input.called[0];
  const ProgramShape& body = input.called[1];
  KILN_RETURN_IF_ERROR(RequireArguments(input, "the condition", condition, input.operands));
  KILN_RETURN_IF_ERROR(RequireArguments(input, "the body", body, input.operands));
  if (!condition.result.is_scalar() || !IsPred(condition.result.type())) {
    return Error(input, "; the condition gives ", condition.result, "; expected pred[]");
  }
  if (!body.result.SameTypeAndDimensions(operand)) {
    return Error(input, "; the body gives ", body.result, "; expected the operand's shape");
  }
  return operand;
}

}  // namespace kiln::rules
