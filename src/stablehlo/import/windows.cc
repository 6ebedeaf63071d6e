#include "stablehlo/import/windows.h"

#include <algorithm>

#include "stablehlo/import/folds.h"
#include "stablehlo/import/products.h"
#include "stablehlo/import/quantised.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// An attribute with a number for each dimension of a window, or `absent` for each.
Result<Ints> PerDimension(const Op& op, std::string_view name, size_t rank, int64_t absent) {
  if (name.empty()) return Ints(rank, absent);
  KILN_ASSIGN_OR_RETURN(Ints values, op.IntList(name, Ints(rank, absent)));
  if (values.size() == rank) return values;
  return InvalidArgument("the attribute ", name, " has ", values.size(), " numbers; expected ",
                         rank);
}

Result<Ints> PaddingOf(const Op& op, std::string_view name, size_t rank) {
  const mlir::Attribute* attribute = op.Find(name);
  if (!attribute) return Ints(2 * rank, 0);
  std::optional<Ints> values = mlir::IntsOf(*attribute);
  if (values && values->size() == 2 * rank) return *std::move(values);
  return InvalidArgument("the attribute ", name, " must have two numbers for each of ", rank,
                         " dimensions");
}

Result<Values> ReduceWindow(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.IntList("window_dimensions"));
  KILN_ASSIGN_OR_RETURN(
      std::vector<WindowDimension> window,
      WindowOf(op, sizes,
               {.base_dilations = "base_dilations", .window_dilations = "window_dilations"}));
  return Fold(op, Opcode::kReduceWindow, {{Attr::kWindow, std::move(window)}});
}

// Without window_dimensions each element is a window.
Result<Values> SelectAndScatter(Op& op) {
  const auto rank = static_cast<size_t>(op.shape(0).rank());
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.IntList("window_dimensions", Ints(rank, 1)));
  KILN_ASSIGN_OR_RETURN(std::vector<WindowDimension> window, WindowOf(op, sizes, {}));
  const Shape scalar = Shape::Scalar(op.type(0));
  const std::vector<Shape> pair = {scalar, scalar};
  KILN_ASSIGN_OR_RETURN(
      ir::Computation * select,
      op.importer.ImportRegion(*op.operation.regions[0], op.body, "select", pair));
  // Sums may have a wider type than their terms.
  KILN_ASSIGN_OR_RETURN(ElementType result, op.ResultElement(0));
  Values operands = op.operands;
  if (result == op.type(0)) {
    KILN_ASSIGN_OR_RETURN(
        ir::Computation * scatter,
        op.importer.ImportRegion(*op.operation.regions[1], op.body, "scatter", pair));
    return op.One(op.b.Add(Opcode::kSelectAndScatter, std::move(operands),
                           {{Attr::kWindow, std::move(window)}}, std::nullopt, {select, scatter}));
  }
  return Unimplemented("a result of another element type than the operand's is not implemented");
}

Result<Values> Convolution(Op& op) { return ConvolutionBy(op); }

Result<ConvolutionDimensions> DimensionsOf(const mlir::Attribute& record) {
  ConvolutionDimensions d;
  struct Number {
    std::string_view name;
    int64_t* to;
  };
  for (const Number& n : {Number{"input_batch_dimension", &d.input_batch},
                          {"input_feature_dimension", &d.input_feature},
                          {"kernel_input_feature_dimension", &d.kernel_input_feature},
                          {"kernel_output_feature_dimension", &d.kernel_output_feature},
                          {"output_batch_dimension", &d.output_batch},
                          {"output_feature_dimension", &d.output_feature}}) {
    KILN_ASSIGN_OR_RETURN(*n.to, IntField(record, n.name));
  }
  KILN_ASSIGN_OR_RETURN(d.input_spatial, IntsField(record, "input_spatial_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.kernel_spatial, IntsField(record, "kernel_spatial_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.output_spatial, IntsField(record, "output_spatial_dimensions"));
  const size_t spatial = d.input_spatial.size();
  if (d.kernel_spatial.size() != spatial || d.output_spatial.size() != spatial) {
    return InvalidArgument("dimension_numbers has ", spatial, ", ", d.kernel_spatial.size(),
                           " and ", d.output_spatial.size(),
                           " spatial dimensions; expected equally many");
  }
  // Each dimension is one thing.
  auto all = [&](Ints dims, int64_t a, int64_t b) {
    dims.push_back(a);
    dims.push_back(b);
    std::vector<bool> seen(dims.size());
    for (int64_t x : dims) {
      if (x < 0 || x >= d.rank() || seen[static_cast<size_t>(x)]) return false;
      seen[static_cast<size_t>(x)] = true;
    }
    return true;
  };
  if (all(d.input_spatial, d.input_batch, d.input_feature) &&
      all(d.kernel_spatial, d.kernel_input_feature, d.kernel_output_feature) &&
      all(d.output_spatial, d.output_batch, d.output_feature)) {
    return d;
  }
  return InvalidArgument("dimension_numbers must name each dimension once");
}

}  // namespace

Result<std::vector<WindowDimension>> WindowOf(const Op& op, const Ints& sizes,
                                              const WindowNames& names, const Ints* padding) {
  const size_t rank = sizes.size();
  KILN_ASSIGN_OR_RETURN(Ints strides, PerDimension(op, names.strides, rank, 1));
  KILN_ASSIGN_OR_RETURN(Ints base, PerDimension(op, names.base_dilations, rank, 1));
  KILN_ASSIGN_OR_RETURN(Ints window, PerDimension(op, names.window_dilations, rank, 1));
  KILN_ASSIGN_OR_RETURN(Ints reversal, PerDimension(op, names.reversal, rank, 0));
  Ints around;
  if (padding) {
    around = *padding;
  } else {
    KILN_ASSIGN_OR_RETURN(around, PaddingOf(op, names.padding, rank));
  }
  if (around.size() != 2 * rank) {
    return InvalidArgument("found ", around.size(),
                           " numbers of padding; expected two for each of ", rank, " dimensions");
  }
  std::vector<WindowDimension> dimensions;
  for (size_t d = 0; d < rank; ++d) {
    dimensions.push_back({.size = sizes[d],
                          .stride = strides[d],
                          .low = around[2 * d],
                          .high = around[2 * d + 1],
                          .base_dilation = base[d],
                          .window_dilation = window[d],
                          .reversed = reversal[d] != 0});
  }
  return dimensions;
}

Result<Values> ConvolutionBy(Op& op, const Ints* padding) {
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("dimension_numbers"));
  KILN_ASSIGN_OR_RETURN(ConvolutionDimensions labels, DimensionsOf(*record));
  if (op.shape(1).rank() != labels.rank()) {
    return InvalidArgument("dimension_numbers is ", labels.ToString(), "; the operands must have ",
                           labels.rank(), " dimensions");
  }
  Ints sizes;
  for (int64_t d : labels.kernel_spatial) sizes.push_back(op.shape(1).dim(d));
  KILN_ASSIGN_OR_RETURN(std::vector<WindowDimension> window,
                        WindowOf(op, sizes,
                                 {.base_dilations = "lhs_dilation",
                                  .window_dilations = "rhs_dilation",
                                  .reversal = "window_reversal"},
                                 padding));
  KILN_ASSIGN_OR_RETURN(int64_t features, op.Int("feature_group_count", 1));
  KILN_ASSIGN_OR_RETURN(int64_t batches, op.Int("batch_group_count", 1));
  Attributes attributes = {{Attr::kWindow, std::move(window)}, {Attr::kDimLabels, labels}};
  if (features != 1) attributes.Set(Attr::kFeatureGroupCount, features);
  if (batches != 1) attributes.Set(Attr::kBatchGroupCount, batches);
  Product product;
  product.make = [&](Instruction* lhs, Instruction* rhs, ElementType type) {
    return Result<Instruction*>(ProductOf(op.b, Opcode::kConvolution, lhs, rhs, attributes, type));
  };
  auto is_padded = [](const WindowDimension& w) {
    return w.low != 0 || w.high != 0 || w.base_dilation != 1;
  };
  if (std::ranges::any_of(attributes.Window(Attr::kWindow), is_padded)) {
    product.pad = [&](Instruction* lhs, Instruction* number) {
      std::vector<WindowDimension> inside = attributes.Window(Attr::kWindow);
      std::vector<PaddingDimension> padding(static_cast<size_t>(labels.rank()));
      for (size_t d = 0; d < inside.size(); ++d) {
        WindowDimension& w = inside[d];
        padding[static_cast<size_t>(labels.input_spatial[d])] = {w.low, w.high,
                                                                 w.base_dilation - 1};
        w.low = w.high = 0;
        w.base_dilation = 1;
      }
      attributes.Set(Attr::kWindow, std::move(inside));
      return op.b.Add(Opcode::kPad, {lhs, number}, {{Attr::kPadding, std::move(padding)}});
    };
  }
  product.terms = std::max<int64_t>(op.shape(1).dim(labels.kernel_input_feature), 1);
  for (int64_t size : sizes) product.terms *= std::max<int64_t>(size, 1);
  product.result_dimension = [&](int64_t axis) -> std::optional<int64_t> {
    if (axis != labels.kernel_output_feature) return std::nullopt;
    return labels.output_feature;
  };
  return LowerProduct(op, product);
}

constexpr Quantised kStorage = Quantised::kStorage;

static constexpr Row kRows[] = {
    {"stablehlo.reduce_window", ReduceWindow, {2, -1}, kSome, 1, kStorage},
    {"stablehlo.select_and_scatter", SelectAndScatter, 3, 1, 2, kStorage},
    {"stablehlo.convolution", Convolution, 2, 1, 0, Quantised::kOwn},
};

std::span<const Row> WindowRows() { return kRows; }

}  // namespace kiln::stablehlo
