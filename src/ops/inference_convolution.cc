// Convolution, its patches, and the gradient of pooling.
#include "ops/inference_rules.h"
#include "ops/window.h"

namespace kiln::rules {
namespace {

Status RequireWindow(const InferenceInput& input, size_t rank) {
  const std::vector<WindowDimension>& window = input.attributes.Window(Attr::kWindow);
  if (window.size() == rank) return OkStatus();
  return Error(input, "; the window has ", window.size(), " dimensions; expected ", rank);
}

Result<Dimension> Places(const InferenceInput& input, const WindowDimension& window,
                         const Dimension& size, int64_t d) {
  if (!size.is_constant()) {
    if (IsTrivial(window)) return size;
    if (size.is_symbolic()) return Symbolic(input, d, SymbolicWindowPlaces(window, size));
    return Error(input, "; dimension ", d, " is ", size, "; a window along it needs a number");
  }
  std::optional<int64_t> count = WindowPlaces(window, size.size());
  if (count) return Dimension(*count);
  return Error(input, "; dimension ", d, " of the window is ",
               AttrValueText(std::vector<WindowDimension>{window}),
               "; sizes, strides and dilations must be at least 1, and all of it must fit into 64 "
               "bits");
}

// size / count, if that is an integer for all values of the symbols.
std::optional<Dimension> Multiple(const Dimension& size, int64_t count) {
  if (size.is_bounded()) return std::nullopt;
  Result<Dimension> part = Dimension::Quotient(size, count);
  if (!part.ok()) return std::nullopt;
  Result<Dimension> whole = Dimension::Product(*part, count);
  if (!whole.ok() || *whole != size) return std::nullopt;
  return *part;
}

// A count in an attribute, 1 by default, which must divide all of `sizes`.
Result<int64_t> GroupCount(const InferenceInput& input, Attr key,
                           std::initializer_list<const Dimension*> sizes) {
  int64_t count = input.attributes.Int(key, 1);
  if (count < 1)
    return Error(input, "; ", InfoOf(key).name, " is ", count, "; expected at least 1");
  for (const Dimension* size : sizes) {
    if (count == 1 || Multiple(*size, count)) continue;
    return Error(input, "; ", InfoOf(key).name, " is ", count, ", which does not divide ", *size);
  }
  return count;
}

bool Divides(const Dimension& whole, int64_t count, const Dimension& part) {
  if (count == 1) return whole == part;
  return Multiple(whole, count) == part;
}

}  // namespace

Result<Shape> InferConvolution(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& lhs = OperandShape(input, 0);
  const Shape& rhs = OperandShape(input, 1);
  const ConvolutionDimensions& d = input.attributes.Convolution(Attr::kDimLabels);
  if (lhs.type() != rhs.type()) return Error(input, "; their element types must be equal");
  if (lhs.rank() != d.rank() || rhs.rank() != d.rank()) {
    return Error(input, "; dim_labels is ", d.ToString(), "; they must have ", d.rank(),
                 " dimensions");
  }
  KILN_RETURN_IF_ERROR(RequireWindow(input, d.input_spatial.size()));
  const Dimension& batch = lhs.dimension(d.input_batch);
  const Dimension& features = lhs.dimension(d.input_feature);
  const Dimension& results = rhs.dimension(d.kernel_output_feature);
  KILN_ASSIGN_OR_RETURN(int64_t feature_groups,
                        GroupCount(input, Attr::kFeatureGroupCount, {&features, &results}));
  KILN_ASSIGN_OR_RETURN(int64_t batch_groups,
                        GroupCount(input, Attr::kBatchGroupCount, {&batch, &results}));
  if (feature_groups > 1 && batch_groups > 1) {
    return Error(input, "; feature_group_count is ", feature_groups, " and batch_group_count is ",
                 batch_groups, "; one of them must be 1");
  }
  if (!Divides(features, feature_groups, rhs.dimension(d.kernel_input_feature))) {
    return Error(input, "; lhs has ", features, " features and rhs takes ",
                 rhs.dimension(d.kernel_input_feature), "; expected them to be equal, or ",
                 "feature_group_count (", feature_groups, ") times as many");
  }
  KILN_ASSIGN_OR_RETURN(ElementType type, ProductType(input));
  std::vector<Dimension> dimensions(static_cast<size_t>(d.rank()));
  dimensions[static_cast<size_t>(d.output_batch)] =
      batch_groups == 1 ? batch : *Multiple(batch, batch_groups);
  dimensions[static_cast<size_t>(d.output_feature)] = results;
  const std::vector<WindowDimension>& window = input.attributes.Window(Attr::kWindow);
  for (size_t i = 0; i < window.size(); ++i) {
    if (rhs.dimension(d.kernel_spatial[i]) != Dimension(window[i].size)) {
      return Error(input, "; the window is ", AttrValueText(window),
                   "; its sizes must be those of rhs");
    }
    KILN_ASSIGN_OR_RETURN(
        dimensions[static_cast<size_t>(d.output_spatial[i])],
        Places(input, window[i], lhs.dimension(d.input_spatial[i]), d.input_spatial[i]));
  }
  return Shape(type, std::move(dimensions));
}

Result<Shape> InferPatches(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  KILN_RETURN_IF_ERROR(RequireWindow(input, static_cast<size_t>(operand.rank())));
  const std::vector<WindowDimension>& window = input.attributes.Window(Attr::kWindow);
  std::vector<Dimension> dimensions;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    KILN_ASSIGN_OR_RETURN(Dimension count,
                          Places(input, window[static_cast<size_t>(d)], operand.dimension(d), d));
    dimensions.push_back(count);
  }
  for (const WindowDimension& w : window) dimensions.emplace_back(w.size);
  return Shape(operand.type(), std::move(dimensions));
}

Result<Shape> InferSelectAndScatter(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape& operand = OperandShape(input, 0);
  const Shape& source = OperandShape(input, 1);
  const Shape scalar = Shape::Scalar(operand.type());
  KILN_RETURN_IF_ERROR(RequireWindow(input, static_cast<size_t>(operand.rank())));
  std::vector<Dimension> places;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const WindowDimension& w = input.attributes.Window(Attr::kWindow)[static_cast<size_t>(d)];
    if (w.reversed || w.base_dilation != 1 || w.window_dilation != 1) {
      return Error(input, "; a window that is reversed or dilated is for convolutions");
    }
    KILN_ASSIGN_OR_RETURN(Dimension count, Places(input, w, operand.dimension(d), d));
    places.push_back(count);
  }
  if (!source.SameTypeAndDimensions(Shape(source.type(), places))) {
    return Error(input, "; the source must be ", Shape(source.type(), places),
                 ", an element for each place of the window");
  }
  const Shape part = Shape::Scalar(source.type());
  if (source.type() != operand.type()) {
    return Error(input, "; operand and source must have one element type");
  }
  if (!OperandShape(input, 2).SameTypeAndDimensions(part)) {
    return Error(input, "; init_value must be ", part);
  }
  const ProgramShape& select = input.called[0];
  bool selects =
      select.parameters.size() == 2 && select.result.is_scalar() && IsPred(select.result.type());
  for (const Shape& parameter : select.parameters) {
    selects &= parameter.SameTypeAndDimensions(scalar);
  }
  if (!selects) {
    return Error(input, "; select takes ", ShapeList(select.parameters), " to ", select.result,
                 "; expected two ", scalar, " to pred[]");
  }
  const ProgramShape& scatter = input.called[1];
  bool scatters = scatter.parameters.size() == 2 && scatter.result.SameTypeAndDimensions(part);
  for (const Shape& parameter : scatter.parameters) {
    scatters &= parameter.SameTypeAndDimensions(part);
  }
  if (!scatters) {
    return Error(input, "; scatter takes ", ShapeList(scatter.parameters), " to ", scatter.result,
                 "; expected two ", part, " to the same");
  }
  return WithoutLayout(operand);
}

}  // namespace kiln::rules
