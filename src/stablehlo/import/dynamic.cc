// Operations with operands for shapes, or for other numbers that are attributes in HLO: these
// operands are evaluated at import.
#include <algorithm>

#include "stablehlo/import/gather_scatter.h"
#include "stablehlo/import/windows.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// The result's shape: what its type says, or else an operand.
Result<Shape> ShapeBy(Op& op, size_t operand, std::string_view what) {
  if (op.HasShape(0)) return op.ResultShape(0);
  KILN_ASSIGN_OR_RETURN(ElementType element, op.ResultElement(0));
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.KnownInts(operand, what));
  const Shape shape(element, sizes);
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

// Cuts dimensions of the size of their bounds to the sizes in an operand.
Instruction* Cut(Op& op, Instruction* whole, Instruction* sizes, const Ints& dimensions) {
  for (int64_t d : dimensions) {
    if (sizes->shape().rank() != 1 || d >= sizes->shape().dim(0)) {
      return op.b.Fail(InvalidArgument("the result's shape is ", sizes->shape(),
                                       "; expected a size for each dimension"));
    }
    Instruction* size = op.b.Slice(sizes, {{d, d + 1, 1}});
    size = op.b.Convert(op.b.Reshape(size, Ints()), ElementType::kS32);
    whole = op.b.Add(Opcode::kSetDimensionSize, {whole, size}, {{Attr::kDimensions, Ints{d}}});
  }
  return whole;
}

Result<Values> DynamicBroadcastInDim(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints dimensions, op.IntList("broadcast_dimensions"));
  KILN_ASSIGN_OR_RETURN(Shape shape, ShapeBy(op, 1, "the result's shape"));
  Ints cut;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const auto from = std::ranges::find(dimensions, d) - dimensions.begin();
    const bool kept = from < std::min(std::ssize(dimensions), op.shape(0).rank()) &&
                      op.shape(0).dimension(from) == shape.dimension(d);
    if (kept || shape.dimension(d).is_constant()) continue;
    shape.set_dimension(d, shape.dim(d));
    cut.push_back(d);
  }
  Instruction* whole = op.b.BroadcastInDim(op.operand(0), shape.dimensions(), dimensions);
  return op.One(Cut(op, whole, op.operand(1), cut));
}

Result<Values> DynamicIota(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t dimension, op.Int("iota_dimension"));
  KILN_ASSIGN_OR_RETURN(Shape shape, ShapeBy(op, 0, "the result's shape"));
  Ints cut;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d).is_constant()) continue;
    shape.set_dimension(d, shape.dim(d));
    cut.push_back(d);
  }
  Instruction* whole = op.b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, dimension}}, shape);
  return op.One(Cut(op, whole, op.operand(0), cut));
}

Result<Values> DynamicReshape(Op& op) {
  KILN_ASSIGN_OR_RETURN(Shape shape, ShapeBy(op, 1, "the result's shape"));
  return op.One(op.b.Add(Opcode::kReshape, {op.operand(0)}, {}, shape));
}

// Three operands of one number for each dimension.
Result<std::vector<Ints>> ThreeLists(Op& op, size_t first,
                                     std::initializer_list<std::string_view> names) {
  std::vector<Ints> lists;
  for (std::string_view name : names) {
    KILN_ASSIGN_OR_RETURN(Ints list, op.KnownInts(first++, name));
    if (std::ssize(list) != op.shape(0).rank()) {
      return InvalidArgument(name, " has ", list.size(), " numbers; expected ", op.shape(0).rank());
    }
    lists.push_back(std::move(list));
  }
  return lists;
}

Result<Values> DynamicPad(Op& op) {
  KILN_ASSIGN_OR_RETURN(
      std::vector<Ints> lists,
      ThreeLists(op, 2, {"the padding below", "the padding above", "the padding between"}));
  std::vector<PaddingDimension> padding;
  for (size_t d = 0; d < lists[0].size(); ++d) {
    padding.push_back({lists[0][d], lists[1][d], lists[2][d]});
  }
  return op.One(op.b.Add(Opcode::kPad, {op.operand(0), op.operand(1)},
                         {{Attr::kPadding, std::move(padding)}}));
}

// The sizes of a slice, if the limits are the sum of starts and sizes; null otherwise.
Instruction* SizesOfSlice(const Op& op) {
  const Instruction* limits = op.operand(2);
  if (limits->opcode() != Opcode::kAdd) return nullptr;
  for (int64_t k : {0, 1}) {
    if (limits->operand(k) == op.operand(1)) return limits->operand(1 - k);
  }
  return nullptr;
}

// Where a slice begins may be known at run time only, if its size is known and it has no stride.
Result<Values> SliceOfKnownSize(Op& op, const Instruction* sizes) {
  KILN_ASSIGN_OR_RETURN(Ints strides, op.KnownInts(3, "the strides"));
  Shape shape;
  if (op.HasShape(0)) {
    KILN_ASSIGN_OR_RETURN(shape, op.ResultShape(0));
  } else {
    KILN_ASSIGN_OR_RETURN(Ints known, op.KnownIntsOf(sizes, "the sizes of the slice"));
    shape = Shape(op.type(0), known);
    KILN_RETURN_IF_ERROR(ValidateShape(shape));
  }
  for (int64_t stride : strides) {
    if (stride != 1) {
      return Unimplemented("a slice with the stride ", stride,
                           " of which the start is not known when the program is imported is not "
                           "implemented");
    }
  }
  const int64_t rank = op.shape(0).rank();
  if (op.shape(1).rank() != 1 || op.shape(1).dimension(0) != Dimension(rank) ||
      !shape.is_static()) {
    return InvalidArgument("the starts are ", op.shape(1), "; expected ", rank, " of them");
  }
  Values operands = {op.operand(0)};
  for (int64_t d = 0; d < rank; ++d) {
    operands.push_back(op.b.Reshape(op.b.Slice(op.operand(1), {{d, d + 1, 1}}), Ints()));
  }
  return op.One(op.b.Add(Opcode::kDynamicSlice, std::move(operands),
                         {{Attr::kDynamicSliceSizes, shape.dims()}}));
}

Result<Values> RealDynamicSlice(Op& op) {
  Folder& folder = op.importer.folder();
  const bool known = folder.Find(op.operand(1)) && folder.Find(op.operand(2));
  const Instruction* sizes = known ? nullptr : SizesOfSlice(op);
  if (!known && (sizes || op.HasShape(0))) return SliceOfKnownSize(op, sizes);
  KILN_ASSIGN_OR_RETURN(std::vector<Ints> lists,
                        ThreeLists(op, 1, {"the starts", "the limits", "the strides"}));
  std::vector<SliceDimension> slices;
  for (size_t d = 0; d < lists[0].size(); ++d) {
    slices.push_back({lists[0][d], lists[1][d], lists[2][d]});
  }
  return op.One(op.b.Slice(op.operand(0), std::move(slices)));
}

Result<Values> DynamicGather(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.KnownInts(2, "the sizes of the slices"));
  KILN_ASSIGN_OR_RETURN(Instruction * gather, GatherOf(op, std::move(sizes)));
  return op.One(gather);
}

Result<Values> DynamicConv(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints padding, op.KnownInts(2, "the padding"));
  return ConvolutionBy(op, &padding);
}

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"stablehlo.dynamic_broadcast_in_dim", DynamicBroadcastInDim, 2, 1, 0, kStorage},
    {"stablehlo.dynamic_iota", DynamicIota, 1, 1},
    {"stablehlo.dynamic_reshape", DynamicReshape, 2, 1, 0, kStorage},
    {"stablehlo.dynamic_pad", DynamicPad, 5, 1, 0, kStorage},
    {"stablehlo.real_dynamic_slice", RealDynamicSlice, 4, 1, 0, kStorage},
    {"stablehlo.dynamic_gather", DynamicGather, 3, 1, 0, kStorage},
    {"stablehlo.dynamic_conv", DynamicConv, 3, 1, 0, Quantised::kOwn},
};

}  // namespace

std::span<const Row> DynamicRows() { return kRows; }

}  // namespace kiln::stablehlo
