// Collectives, tokens, and transfers.
#include <algorithm>

#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

Status RequireToken(const InferenceInput& input, int64_t operand) {
  if (OperandShape(input, operand).is_token()) return OkStatus();
  return Error(input, "; operand ", operand, " must be a token");
}

// Numbers of processes: not negative, and each once.
Status RequireGroups(const InferenceInput& input) {
  std::vector<int64_t> all;
  for (const Ints& group : input.attributes.GroupsOf(Attr::kReplicaGroups)) {
    for (int64_t process : group) {
      // Groups may be of different sizes, and are padded then.
      if (process == -1) continue;
      if (process < 0) return Error(input, "; replica_groups has ", process);
      all.push_back(process);
    }
  }
  std::sort(all.begin(), all.end());
  auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice == all.end()) return OkStatus();
  return Error(input, "; replica_groups has ", *twice, " twice");
}

Status RequirePairs(const InferenceInput& input) {
  for (const Ints& pair : input.attributes.GroupsOf(Attr::kSourceTargetPairs)) {
    if (pair.size() == 2 && pair[0] >= 0 && pair[1] >= 0) continue;
    return Error(input, "; source_target_pairs has ", AttrValueText(pair),
                 "; expected two numbers that are not negative");
  }
  return OkStatus();
}

std::vector<Shape> OperandsOf(const InferenceInput& input) {
  std::vector<Shape> shapes;
  for (const Shape* operand : input.operands) shapes.push_back(WithoutLayout(*operand));
  return shapes;
}

Shape OneOrTuple(std::vector<Shape> shapes) {
  if (shapes.size() == 1) return std::move(shapes[0]);
  return Shape::Tuple(std::move(shapes));
}

// The one dimension along which the operands are gathered or cut.
Result<int64_t> OneDimension(const InferenceInput& input) {
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  if (dimensions.size() != 1) {
    return Error(input, "; dimensions has ", dimensions.size(), " entries; expected 1");
  }
  for (const Shape* operand : input.operands) {
    KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, operand->rank()));
  }
  return dimensions[0];
}

// The declared results of a gather or split, which differ from the operands in the one dimension,
// by a common integral factor.
Result<Shape> Resized(const InferenceInput& input, bool larger) {
  KILN_RETURN_IF_ERROR(RequireArrays(input));
  KILN_RETURN_IF_ERROR(RequireGroups(input));
  KILN_ASSIGN_OR_RETURN(int64_t dimension, OneDimension(input));
  if (!input.declared) return Error(input, "; the result's shape is missing");
  const size_t n = input.operands.size();
  const bool one = n == 1;
  if (one ? !input.declared->is_array()
          : !input.declared->is_tuple() || input.declared->elements().size() != n) {
    return Error(input, "; the result is ", *input.declared,
                 "; expected an array for each operand");
  }
  std::vector<Shape> results;
  for (size_t i = 0; i < n; ++i) {
    const Shape& operand = *input.operands[i];
    Shape result = WithoutLayout(one ? *input.declared : input.declared->elements()[i]);
    bool fits = result.is_array() && result.rank() == operand.rank();
    if (fits) {
      Shape same = WithoutLayout(operand);
      same.set_dimension(dimension, result.dimension(dimension));
      result.set_type(operand.type());
      const Dimension &before = operand.dimension(dimension), &after = result.dimension(dimension);
      fits = result == same;
      if (before.is_constant() && after.is_constant()) {
        int64_t large = larger ? after.size() : before.size();
        int64_t small = larger ? before.size() : after.size();
        fits &= small == 0 ? large == 0 : large % small == 0;
      }
    }
    if (!fits) {
      return Error(input, "; result ", i, " is ", result, "; it may differ in dimension ",
                   dimension, " alone, by a whole factor");
    }
    results.push_back(std::move(result));
  }
  return OneOrTuple(std::move(results));
}

// A computation of two scalars for operands of one type.
Status RequireFold(const InferenceInput& input) {
  for (const Shape* operand : input.operands) {
    if (operand->type() != OperandShape(input, 0).type()) {
      return Error(input, "; their element types must be equal");
    }
  }
  return RequireReducer(input, {Shape::Scalar(OperandShape(input, 0).type())});
}

}  // namespace

Result<Shape> InferAllGather(const InferenceInput& input) { return Resized(input, true); }

Result<Shape> InferAllReduce(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireGroups(input));
  KILN_RETURN_IF_ERROR(RequireFold(input));
  return OneOrTuple(OperandsOf(input));
}

Result<Shape> InferReduceScatter(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireFold(input));
  return Resized(input, false);
}

Result<Shape> InferAllToAll(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireGroups(input));
  for (const Shape* operand : input.operands) {
    if (!operand->SameTypeAndDimensions(OperandShape(input, 0))) {
      return Error(input, "; they must be equal");
    }
  }
  return Shape::Tuple(OperandsOf(input));
}

Result<Shape> InferFromGroup(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireGroups(input));
  KILN_RETURN_IF_ERROR(RequirePairs(input));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferProcessId(const InferenceInput& input) {
  return Shape::Scalar(ElementType::kU32);
}

Result<Shape> InferAfterAll(const InferenceInput& input) {
  for (int64_t i = 0; i < std::ssize(input.operands); ++i) {
    KILN_RETURN_IF_ERROR(RequireToken(input, i));
  }
  return Shape::Token();
}

Result<Shape> InferInfeed(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireToken(input, 0));
  if (!input.declared) return Error(input, "; the result's shape is missing");
  const Shape& whole = *input.declared;
  // The builder declares the value's shape only.
  if (whole.is_array()) return Shape::Tuple({WithoutLayout(whole), Shape::Token()});
  if (!whole.is_tuple() || whole.elements().size() != 2 || !whole.elements()[1].is_token()) {
    return Error(input, "; the result is ", whole, "; expected a value and a token");
  }
  return WithoutLayout(whole);
}

Result<Shape> InferOutfeed(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireToken(input, 1));
  return Shape::Token();
}

Result<Shape> InferSend(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireToken(input, 1));
  KILN_RETURN_IF_ERROR(RequirePairs(input));
  return Shape::Tuple(
      {WithoutLayout(OperandShape(input, 0)), Shape::Scalar(ElementType::kU32), Shape::Token()});
}

Result<Shape> InferRecv(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireToken(input, 0));
  KILN_RETURN_IF_ERROR(RequirePairs(input));
  if (!input.declared) return Error(input, "; the result's shape is missing");
  const Shape& whole = *input.declared;
  Shape value = whole;
  if (whole.is_tuple() && whole.elements().size() == 3 && whole.elements()[2].is_token()) {
    value = whole.elements()[0];
  }
  return Shape::Tuple({WithoutLayout(value), Shape::Scalar(ElementType::kU32), Shape::Token()});
}

namespace {

// The result of a transfer's beginning: a value, its context and a token.
Status RequireTransfer(const InferenceInput& input) {
  const Shape& operand = OperandShape(input, 0);
  bool fits = operand.is_tuple() && operand.elements().size() == 3 &&
              operand.elements()[1] == Shape::Scalar(ElementType::kU32) &&
              operand.elements()[2].is_token();
  if (fits) return OkStatus();
  return Error(input, "; it must be a tuple of a value, a u32[] and a token");
}

}  // namespace

Result<Shape> InferSendDone(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTransfer(input));
  return Shape::Token();
}

Result<Shape> InferRecvDone(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTransfer(input));
  return Shape::Tuple({OperandShape(input, 0).elements()[0], Shape::Token()});
}

}  // namespace kiln::rules
