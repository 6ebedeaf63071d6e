// Reductions: dots, folds and windows.
#include <algorithm>

#include "ops/inference_rules.h"
#include "ops/window.h"

namespace kiln::rules {
namespace {

bool Contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Paired dimensions of the two sides must be of equal size.
Status RequirePaired(const InferenceInput& input, std::string_view what, const Ints& lhs,
                     const Ints& rhs) {
  if (lhs.size() != rhs.size()) {
    return Error(input, "; there are ", lhs.size(), " ", what, " dimensions of lhs and ",
                 rhs.size(), " of rhs; the numbers must be equal");
  }
  for (size_t i = 0; i < lhs.size(); ++i) {
    const Dimension& l = OperandShape(input, 0).dimension(lhs[i]);
    const Dimension& r = OperandShape(input, 1).dimension(rhs[i]);
    if (l != r) {
      return Error(input, "; ", what, " dimension ", lhs[i], " of lhs is ", l, " and ", rhs[i],
                   " of rhs is ", r, "; they must be equal");
    }
  }
  return OkStatus();
}

Ints Both(Ints first, const Ints& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Result<ElementType> ProductType(const InferenceInput& input) {
  ElementType type = OperandShape(input, 0).type();
  if (!input.declared) return type;
  KILN_RETURN_IF_ERROR(RequireDeclaredArray(input));
  ElementType wanted = input.declared->type();
  bool wider = CategoryOf(wanted) == CategoryOf(type) && BitWidth(wanted) > BitWidth(type);
  if (wanted != type && !wider) {
    return Error(input, "; the result's element type is ", TypeName(wanted),
                 "; it must be the operands' or a wider one of their kind");
  }
  return wanted;
}

Status RequireReducer(const InferenceInput& input, const std::vector<Shape>& scalars) {
  const ProgramShape& reducer = input.called[0];
  size_t n = scalars.size();
  bool fits = reducer.parameters.size() == 2 * n;
  for (size_t i = 0; fits && i < 2 * n; ++i) {
    fits = reducer.parameters[i].SameTypeAndDimensions(scalars[i % n]);
  }
  if (!fits) {
    return Error(input, "; the computation takes ", ShapeList(reducer.parameters),
                 "; expected accumulators ", ShapeList(scalars), " and elements of the same types");
  }
  Shape expected = n == 1 ? scalars[0] : Shape::Tuple(scalars);
  if (!reducer.result.SameTypeAndDimensions(expected)) {
    return Error(input, "; the computation gives ", reducer.result, "; expected ", expected);
  }
  return OkStatus();
}

Result<Shape> InferDot(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& lhs = OperandShape(input, 0);
  const Shape& rhs = OperandShape(input, 1);
  if (lhs.type() != rhs.type()) return Error(input, "; their element types must be equal");
  const Ints& lhs_batch = input.attributes.IntsOf(Attr::kLhsBatchDims);
  const Ints& rhs_batch = input.attributes.IntsOf(Attr::kRhsBatchDims);
  const Ints& lhs_contracting = input.attributes.IntsOf(Attr::kLhsContractingDims);
  const Ints& rhs_contracting = input.attributes.IntsOf(Attr::kRhsContractingDims);
  Ints lhs_named = Both(lhs_batch, lhs_contracting);
  Ints rhs_named = Both(rhs_batch, rhs_contracting);
  KILN_RETURN_IF_ERROR(
      RequireAxes(input, "lhs_batch_dims with lhs_contracting_dims", lhs_named, lhs.rank()));
  KILN_RETURN_IF_ERROR(
      RequireAxes(input, "rhs_batch_dims with rhs_contracting_dims", rhs_named, rhs.rank()));
  KILN_RETURN_IF_ERROR(RequirePaired(input, "batch", lhs_batch, rhs_batch));
  KILN_RETURN_IF_ERROR(RequirePaired(input, "contracting", lhs_contracting, rhs_contracting));
  KILN_ASSIGN_OR_RETURN(ElementType type, ProductType(input));
  std::vector<Dimension> dimensions;
  for (int64_t d : lhs_batch) dimensions.push_back(lhs.dimension(d));
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (!Contains(lhs_named, d)) dimensions.push_back(lhs.dimension(d));
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (!Contains(rhs_named, d)) dimensions.push_back(rhs.dimension(d));
  }
  return Shape(type, std::move(dimensions));
}

namespace {

// N operands of equal dimensions and N init values, reduced to N results of these dimensions.
Result<Shape> InferFold(const InferenceInput& input, const std::vector<Dimension>& dimensions) {
  size_t n = input.operands.size() / 2;
  const Shape& first = OperandShape(input, 0);
  std::vector<Shape> scalars, results;
  for (size_t i = 0; i < n; ++i) {
    const Shape& operand = *input.operands[i];
    if (!operand.SameDimensions(first)) {
      return Error(input, "; the operands' dimensions must be equal");
    }
    Shape scalar = Shape::Scalar(operand.type());
    if (!input.operands[n + i]->SameTypeAndDimensions(scalar)) {
      return Error(input, "; init value ", i, " must be ", scalar);
    }
    scalars.push_back(scalar);
    results.push_back(Shape(operand.type(), dimensions));
  }
  KILN_RETURN_IF_ERROR(RequireReducer(input, scalars));
  if (n == 1) return std::move(results[0]);
  return Shape::Tuple(std::move(results));
}

Status RequireInits(const InferenceInput& input) {
  if (input.operands.size() % 2 == 0) return OkStatus();
  return Error(input, "; expected as many init values as operands");
}

}  // namespace

Result<Shape> InferReduce(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireInits(input));
  const Shape& first = OperandShape(input, 0);
  const Ints& dimensions = input.attributes.IntsOf(Attr::kDimensions);
  KILN_RETURN_IF_ERROR(RequireAxes(input, "dimensions", dimensions, first.rank()));
  std::vector<Dimension> kept;
  for (int64_t d = 0; d < first.rank(); ++d) {
    if (!Contains(dimensions, d)) kept.push_back(first.dimension(d));
  }
  return InferFold(input, kept);
}

Result<Shape> InferReduceWindow(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireInits(input));
  const Shape& first = OperandShape(input, 0);
  const std::vector<WindowDimension>& window = input.attributes.Window(Attr::kWindow);
  if (static_cast<int64_t>(window.size()) != first.rank()) {
    return Error(input, "; the window has ", window.size(), " dimensions; expected ", first.rank());
  }
  std::vector<Dimension> places;
  for (int64_t d = 0; d < first.rank(); ++d) {
    const WindowDimension& w = window[static_cast<size_t>(d)];
    const Dimension& size = first.dimension(d);
    if (w.reversed) return Error(input, "; a window that is reversed is for convolutions");
    if (!size.is_constant()) {
      if (IsTrivial(w)) {
        places.push_back(size);
        continue;
      }
      if (size.is_bounded()) {
        return Error(input, "; dimension ", d, " is ", size, "; a window along it needs a number");
      }
      KILN_ASSIGN_OR_RETURN(Dimension some, Symbolic(input, d, SymbolicWindowPlaces(w, size)));
      places.push_back(some);
      continue;
    }
    std::optional<int64_t> count = WindowPlaces(w, size.size());
    if (!count) {
      return Error(input, "; dimension ", d, " of the window is ",
                   AttrValueText(std::vector<WindowDimension>{w}),
                   "; sizes, strides and dilations must be at least 1, and all of it must fit "
                   "into 64 bits");
    }
    places.push_back(*count);
  }
  return InferFold(input, places);
}

}  // namespace kiln::rules
