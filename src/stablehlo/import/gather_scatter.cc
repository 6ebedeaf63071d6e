#include "stablehlo/import/gather_scatter.h"

#include "stablehlo/import/folds.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

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

}  // namespace

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

constexpr Quantised kStorage = Quantised::kStorage;

static constexpr Row kRows[] = {
    {"stablehlo.gather", Gather, 2, 1, 0, kStorage},
    {"stablehlo.scatter", Scatter, {3, -1}, kSome, 1, kStorage},
    {"stablehlo.torch_index_select", TorchIndexSelect, 2, 1, 0, kStorage},
};

std::span<const Row> GatherScatterRows() { return kRows; }

}  // namespace kiln::stablehlo
