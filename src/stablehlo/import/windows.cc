#include "stablehlo/import/windows.h"

#include <algorithm>

#include "stablehlo/import/folds.h"
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

Result<Values> Gather(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.IntList("slice_sizes"));
  KILN_ASSIGN_OR_RETURN(Instruction * gather, GatherOf(op, std::move(sizes)));
  return op.One(gather);
}

Result<Values> Scatter(Op& op) {
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("scatter_dimension_numbers"));
  Attributes attributes;
  constexpr std::pair<Attr, std::string_view> kLists[] = {
      {Attr::kUpdateWindowDims, "update_window_dims"},
      {Attr::kInsertedWindowDims, "inserted_window_dims"},
      {Attr::kScatterDimsToOperandDims, "scatter_dims_to_operand_dims"},
      {Attr::kInputBatchingDims, "input_batching_dims"},
      {Attr::kScatterIndicesBatchingDims, "scatter_indices_batching_dims"}};
  for (const auto& [key, name] : kLists) {
    KILN_ASSIGN_OR_RETURN(Ints list, IntsField(*record, name));
    const bool optional =
        key == Attr::kInputBatchingDims || key == Attr::kScatterIndicesBatchingDims;
    if (!optional || !list.empty()) attributes.Set(key, std::move(list));
  }
  KILN_ASSIGN_OR_RETURN(int64_t vector_dim, IntField(*record, "index_vector_dim"));
  attributes.Set(Attr::kIndexVectorDim, vector_dim);
  for (auto [key, name] : {std::pair{Attr::kIndicesAreSorted, "indices_are_sorted"},
                           std::pair{Attr::kUniqueIndices, "unique_indices"}}) {
    KILN_ASSIGN_OR_RETURN(bool set, op.Bool(name));
    if (set) attributes.Set(key, true);
  }
  return Fold(op, Opcode::kScatter, std::move(attributes));
}

Result<Values> Convolution(Op& op) { return ConvolutionBy(op); }

// The slices of the operand along one dimension that the index names, one after the other.
Result<Values> TorchIndexSelect(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t dim, op.Int("dim"));
  KILN_ASSIGN_OR_RETURN(int64_t batch, op.Int("batch_dims"));
  const Shape &operand = op.shape(0), &index = op.shape(1);
  if (batch < 0 || batch > dim || dim >= operand.rank() || batch > index.rank()) {
    return InvalidArgument("dim is ", dim, " and batch_dims is ", batch, " for ", operand, " and ",
                           index);
  }
  if (!operand.is_static()) return Unimplemented("the sizes of ", operand, " must be known");
  // The result has the operand's dimensions before dim, the index's dimensions behind its batch,
  // and the operand's other dimensions.
  const int64_t picked = index.rank() - batch;
  Ints offset, batching, sizes = operand.dims();
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (d < batch) {
      batching.push_back(d);
      sizes[static_cast<size_t>(d)] = 1;
    } else if (d == dim) {
      sizes[static_cast<size_t>(d)] = 1;
    } else {
      offset.push_back(d < dim ? d : d - 1 + picked);
    }
  }
  Attributes attributes = {{Attr::kOffsetDims, std::move(offset)},
                           {Attr::kCollapsedSliceDims, Ints{dim}},
                           {Attr::kStartIndexMap, Ints{dim}},
                           {Attr::kIndexVectorDim, index.rank()},
                           {Attr::kSliceSizes, std::move(sizes)}};
  if (batch > 0) {
    attributes.Set(Attr::kStartIndicesBatchingDims, batching);
    attributes.Set(Attr::kOperandBatchingDims, std::move(batching));
  }
  return op.One(op.b.Add(Opcode::kGather, op.operands, std::move(attributes)));
}

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

Result<Instruction*> GatherOf(Op& op, Ints slice_sizes) {
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("dimension_numbers"));
  Attributes attributes = {{Attr::kSliceSizes, std::move(slice_sizes)}};
  constexpr std::pair<Attr, std::string_view> kLists[] = {
      {Attr::kOffsetDims, "offset_dims"},
      {Attr::kCollapsedSliceDims, "collapsed_slice_dims"},
      {Attr::kStartIndexMap, "start_index_map"},
      {Attr::kOperandBatchingDims, "operand_batching_dims"},
      {Attr::kStartIndicesBatchingDims, "start_indices_batching_dims"}};
  for (const auto& [key, name] : kLists) {
    KILN_ASSIGN_OR_RETURN(Ints list, IntsField(*record, name));
    const bool optional =
        key == Attr::kOperandBatchingDims || key == Attr::kStartIndicesBatchingDims;
    if (!optional || !list.empty()) attributes.Set(key, std::move(list));
  }
  KILN_ASSIGN_OR_RETURN(int64_t vector_dim, IntField(*record, "index_vector_dim"));
  attributes.Set(Attr::kIndexVectorDim, vector_dim);
  KILN_ASSIGN_OR_RETURN(bool sorted, op.Bool("indices_are_sorted"));
  if (sorted) attributes.Set(Attr::kIndicesAreSorted, true);
  return op.b.Add(Opcode::kGather, {op.operand(0), op.operand(1)}, std::move(attributes));
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
  product.terms = std::max<int64_t>(op.shape(1).dim(labels.kernel_input_feature), 1);
  for (int64_t size : sizes) product.terms *= std::max<int64_t>(size, 1);
  product.result_dimension = [&](int64_t axis) -> std::optional<int64_t> {
    if (axis != labels.kernel_output_feature) return std::nullopt;
    return labels.output_feature;
  };
  return LowerProduct(op, product);
}

Instruction* ProductOf(Builder& b, Opcode opcode, Instruction* lhs, Instruction* rhs,
                       Attributes attributes, ElementType type) {
  if (!lhs || !rhs) return nullptr;
  // Factors of different types are converted to the type of the product. So are integers with a
  // product of another kind: their sums may exceed their type.
  const bool integers = IsInteger(lhs->shape().type()) && !IsInteger(type);
  if (lhs->shape().type() != rhs->shape().type() || integers) {
    lhs = b.Convert(lhs, type);
    rhs = b.Convert(rhs, type);
    if (!lhs || !rhs) return nullptr;
  }
  const ElementType factors = lhs->shape().type();
  const bool wider = CategoryOf(factors) == CategoryOf(type) && BitWidth(type) > BitWidth(factors);
  // Sums of a narrower type, or of another kind, are converted at the end.
  const Shape declared = Shape::Scalar(wider ? type : factors);
  return b.Convert(b.Add(opcode, {lhs, rhs}, std::move(attributes), declared), type);
}

constexpr Quantised kStorage = Quantised::kStorage;

static constexpr Row kRows[] = {
    {"stablehlo.reduce_window", ReduceWindow, {2, -1}, kSome, 1, kStorage},
    {"stablehlo.select_and_scatter", SelectAndScatter, 3, 1, 2, kStorage},
    {"stablehlo.gather", Gather, 2, 1, 0, kStorage},
    {"stablehlo.scatter", Scatter, {3, -1}, kSome, 1, kStorage},
    {"stablehlo.convolution", Convolution, 2, 1, 0, Quantised::kOwn},
    {"stablehlo.torch_index_select", TorchIndexSelect, 2, 1, 0, kStorage},
};

std::span<const Row> WindowRows() { return kRows; }

}  // namespace kiln::stablehlo
