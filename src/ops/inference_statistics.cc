// Batch normalisation and random numbers.
#include <array>

#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

// The operand is an array with features, and the vectors in operands [begin, end) have an element
// for each. Returns their shape.
Result<Shape> RequireFeatures(const InferenceInput& input, int64_t begin, int64_t end) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  int64_t index = input.attributes.Int(Attr::kFeatureIndex);
  if (index < 0 || index >= operand.rank()) {
    return Error(input, "; feature_index is ", index, "; expected a dimension from 0 to below ",
                 operand.rank());
  }
  Shape features(operand.type(), std::vector<Dimension>{operand.dimension(index)});
  for (int64_t i = begin; i < end; ++i) {
    if (!OperandShape(input, i).SameTypeAndDimensions(features)) {
      return Error(input, "; operand ", i, " must be ", features, ", as of dimension ", index);
    }
  }
  return features;
}

bool IsOneOf(const std::string& text, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (text == name) return true;
  }
  return false;
}

}  // namespace

Result<Shape> InferBatchNormTraining(const InferenceInput& input) {
  KILN_ASSIGN_OR_RETURN(Shape features, RequireFeatures(input, 1, 3));
  return Shape::Tuple({WithoutLayout(OperandShape(input, 0)), features, features});
}

Result<Shape> InferBatchNormInference(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireFeatures(input, 1, 5).status());
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferBatchNormGrad(const InferenceInput& input) {
  KILN_ASSIGN_OR_RETURN(Shape features, RequireFeatures(input, 1, 4));
  if (!OperandShape(input, 4).SameTypeAndDimensions(OperandShape(input, 0))) {
    return Error(input, "; the first and the last must be equal");
  }
  return Shape::Tuple({WithoutLayout(OperandShape(input, 0)), features, features});
}

Result<Shape> InferRng(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  const Shape& a = OperandShape(input, 0);
  if (!a.is_scalar() || !a.SameTypeAndDimensions(OperandShape(input, 1))) {
    return Error(input, "; they must be scalars of one type");
  }
  const std::string& distribution = input.attributes.Text(Attr::kDistribution);
  if (!IsOneOf(distribution, {"rng_uniform", "rng_normal"})) {
    return Error(input, "; distribution is ", distribution, "; expected rng_uniform or rng_normal");
  }
  if (distribution == "rng_normal" && !IsFloat(a.type())) {
    return Error(input, "; rng_normal gives floats");
  }
  Shape shape = WithoutLayout(*input.declared);
  shape.set_type(a.type());
  return shape;
}

Result<Shape> InferRngGetAndUpdateState(const InferenceInput& input) {
  if (input.attributes.Int(Attr::kDelta) < 0) {
    return Error(input, "; delta is ", input.attributes.Int(Attr::kDelta), "; expected at least 0");
  }
  return Shape(ElementType::kU64, {2});
}

Result<Shape> InferRngBitGenerator(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& state = OperandShape(input, 0);
  if (!input.declared) return Error(input, "; the result's shape is missing");
  // The shape of the bits only, or of the tuple.
  const Shape* bits = input.declared;
  if (bits->is_tuple() && bits->elements().size() == 2) bits = &bits->elements()[1];
  if (!bits->is_array() || !IsInteger(bits->type())) {
    return Error(input, "; the result is ", *input.declared,
                 "; expected a state and an array of integers");
  }
  const std::string& algorithm = input.attributes.Text(Attr::kAlgorithm);
  if (!IsOneOf(algorithm, {"rng_default", "rng_three_fry", "rng_philox"})) {
    return Error(input, "; algorithm is ", algorithm,
                 "; expected rng_default, rng_three_fry or rng_philox");
  }
  const bool of_two = state.SameTypeAndDimensions(Shape(ElementType::kU64, {2}));
  const bool of_three = state.SameTypeAndDimensions(Shape(ElementType::kU64, {3}));
  if (!of_two && (!of_three || algorithm == "rng_three_fry")) {
    return Error(input, "; the state of ", algorithm, " is u64[2]",
                 algorithm == "rng_three_fry" ? "" : " or u64[3]");
  }
  return Shape::Tuple({WithoutLayout(state), WithoutLayout(*bits)});
}

}  // namespace kiln::rules
