// Constants, and operations that move elements.
#include "stablehlo/import/op.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

Result<Values> Constant(Op& op) {
  const mlir::Attribute* value = op.Find("value");
  if (!value) return InvalidArgument("the attribute value is missing");
  KILN_ASSIGN_OR_RETURN(Literal literal, LiteralOf(*value, op.result_type(0)));
  KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(0));
  const bool splat = literal.shape().is_scalar();
  Instruction* constant = op.b.Constant(std::move(literal));
  return op.One(splat ? op.b.Spread(shape, constant) : constant);
}

Result<Values> Iota(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t dimension, op.Int("iota_dimension"));
  KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(0));
  return op.One(op.b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, dimension}}, shape));
}

Result<Values> BroadcastInDim(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints dimensions, op.IntList("broadcast_dimensions"));
  KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(0));
  return op.One(op.b.BroadcastInDim(op.operand(0), shape.dimensions(), dimensions));
}

// New dimensions precede the operand's.
Result<Values> Broadcast(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.IntList("broadcast_sizes"));
  std::vector<Dimension> to(sizes.begin(), sizes.end());
  Ints dimensions;
  for (const Dimension& d : op.shape(0).dimensions()) {
    dimensions.push_back(std::ssize(to));
    to.push_back(d);
  }
  const Shape shape(op.type(0), std::move(to));
  return op.One(op.b.Add(Opcode::kBroadcast, op.operands,
                         {{Attr::kDimensions, std::move(dimensions)}}, shape));
}

Result<Values> Reshape(Op& op) {
  KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(0));
  return op.One(op.b.Add(Opcode::kReshape, op.operands, {}, shape));
}

// Of quantised types their integers.
Result<Values> BitcastConvert(Op& op) {
  KILN_ASSIGN_OR_RETURN(Shape declared, op.Declared(0));
  if (declared.type() == op.type(0)) return op.operands;
  return op.One(op.b.Add(Opcode::kBitcastConvert, op.operands, {}, declared));
}

Status RequireEqualSizes(size_t a, size_t b) {
  if (a == b) return OkStatus();
  return InvalidArgument("found lists of ", a, " and ", b, " numbers; expected equally many");
}

Result<Values> Slice(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints starts, op.IntList("start_indices"));
  KILN_ASSIGN_OR_RETURN(Ints limits, op.IntList("limit_indices"));
  KILN_ASSIGN_OR_RETURN(Ints strides, op.IntList("strides", Ints(starts.size(), 1)));
  KILN_RETURN_IF_ERROR(RequireEqualSizes(starts.size(), limits.size()));
  KILN_RETURN_IF_ERROR(RequireEqualSizes(starts.size(), strides.size()));
  std::vector<SliceDimension> slices;
  for (size_t d = 0; d < starts.size(); ++d) slices.push_back({starts[d], limits[d], strides[d]});
  return op.One(op.b.Slice(op.operand(0), std::move(slices)));
}

Result<Values> Pad(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints low, op.IntList("edge_padding_low"));
  KILN_ASSIGN_OR_RETURN(Ints high, op.IntList("edge_padding_high"));
  KILN_ASSIGN_OR_RETURN(Ints interior, op.IntList("interior_padding"));
  KILN_RETURN_IF_ERROR(RequireEqualSizes(low.size(), high.size()));
  KILN_RETURN_IF_ERROR(RequireEqualSizes(low.size(), interior.size()));
  std::vector<PaddingDimension> padding;
  for (size_t d = 0; d < low.size(); ++d) padding.push_back({low[d], high[d], interior[d]});
  return op.One(op.b.Add(Opcode::kPad, op.operands, {{Attr::kPadding, std::move(padding)}}));
}

Result<Values> DynamicSlice(Op& op) {
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.IntList("slice_sizes"));
  return op.One(
      op.b.Add(Opcode::kDynamicSlice, op.operands, {{Attr::kDynamicSliceSizes, std::move(sizes)}}));
}

Result<Values> DynamicUpdateSlice(Op& op) {
  return op.One(op.b.Add(Opcode::kDynamicUpdateSlice, op.operands));
}

Result<Values> GetDimensionSize(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t d, op.Int("dimension"));
  if (d < 0 || d >= op.shape(0).rank()) {
    return InvalidArgument("dimension is ", d, "; expected 0 to below ", op.shape(0).rank());
  }
  const Dimension& size = op.shape(0).dimension(d);
  if (size.is_constant() && size.size() <= INT32_MAX) {
    return op.One(op.b.Constant(
        Literal::Scalar<int32_t>(ElementType::kS32, static_cast<int32_t>(size.size()))));
  }
  return op.One(op.b.Add(Opcode::kGetDimensionSize, op.operands, {{Attr::kDimensions, Ints{d}}}));
}

// A known size makes a dimension constant, unless the program declares it bounded.
Result<Values> SetDimensionSize(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t d, op.Int("dimension"));
  std::shared_ptr<const Literal> size = op.importer.folder().Find(op.operand(1));
  Shape shape = op.shape(0);
  const Attributes along = {{Attr::kDimensions, Ints{d}}};
  const bool known = size && size->shape() == Shape::Scalar(ElementType::kS32) && d >= 0 &&
                     d < shape.rank() && shape.rank() == op.result_type(0).rank();
  if (!known) return op.One(op.b.Add(Opcode::kSetDimensionSize, op.operands, along));
  const mlir::Type& type = op.result_type(0);
  const int64_t wanted = type.dimensions[static_cast<size_t>(d)], n = size->AsInt(0);
  const Dimension before = shape.dimension(d);
  const bool bounded = wanted == mlir::kDynamic && !type.bounds.empty() &&
                       type.bounds[static_cast<size_t>(d)] != mlir::kDynamic;
  if (!bounded && before == Dimension(n)) return Values{op.operand(0)};
  if (wanted == n && before.is_constant() && n >= 0 && n < before.size()) {
    std::vector<SliceDimension> slices;
    for (const Dimension& whole : shape.dimensions()) slices.push_back({0, whole.size(), 1});
    slices[static_cast<size_t>(d)].limit = n;
    return op.One(op.b.Slice(op.operand(0), std::move(slices)));
  }
  const bool whole = !bounded && before.size() == n;
  if (whole) shape.set_dimension(d, n);
  return op.One(op.b.Add(Opcode::kSetDimensionSize, op.operands, along,
                         whole ? std::optional(shape) : std::nullopt));
}

// Says something to debuggers or partitioners, and changes no value.
Result<Values> Same(Op& op) {
  Values values = op.operands;
  values.resize(op.result_count());
  return values;
}

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"stablehlo.constant", Constant, 0, 1, 0, kStorage},
    {"chlo.constant", Constant, 0, 1, 0, kStorage},
    {"arith.constant", Constant, 0, 1},
    {"stablehlo.iota", Iota, 0, 1},
    {"stablehlo.broadcast_in_dim", BroadcastInDim, 1, 1, 0, kStorage},
    {"stablehlo.broadcast", Broadcast, 1, 1, 0, kStorage},
    {"stablehlo.reshape", Reshape, 1, 1, 0, kStorage},
    {"stablehlo.bitcast_convert", BitcastConvert, 1, 1, 0, kStorage},
    {"stablehlo.slice", Slice, 1, 1, 0, kStorage},
    {"stablehlo.pad", Pad, 2, 1, 0, kStorage},
    {"stablehlo.dynamic_slice", DynamicSlice, kSome, 1, 0, kStorage},
    {"stablehlo.dynamic_update_slice", DynamicUpdateSlice, {2, -1}, 1, 0, kStorage},
    {"stablehlo.get_dimension_size", GetDimensionSize, 1, 1, 0, kStorage},
    {"stablehlo.set_dimension_size", SetDimensionSize, 2, 1, 0, kStorage},
    {"stablehlo.trace", Same, 1, 0, 0, kStorage},
    {"sdy.sharding_constraint", Same, 1, 1, 0, kStorage},
    // Between the types of two dialects that are one here.
    {"builtin.unrealized_conversion_cast", Same, 1, 1, 0, kStorage},
};

}  // namespace

std::span<const Row> ShapeRows() { return kRows; }

}  // namespace kiln::stablehlo
