#include "ir/dynamic_reshape.h"

#include <algorithm>

namespace kiln::ir {
namespace {

bool Fits(std::span<Instruction* const> operands, const Shape& shape) {
  const Shape& from = operands[0]->shape();
  auto is_size = [](const Instruction* operand) {
    return operand->shape().is_scalar() && IsInteger(operand->shape().type());
  };
  auto is_known = [](const Dimension& d) { return !d.is_symbolic(); };
  return from.is_array() && shape.is_array() && from.type() == shape.type() &&
         std::ssize(operands) == shape.rank() + 1 &&
         std::ranges::all_of(from.dimensions(), is_known) &&
         std::ranges::all_of(shape.dimensions(), is_known) &&
         Product(from.dims()) == Product(shape.dims()) &&
         std::ranges::all_of(operands.subspan(1), is_size);
}

}  // namespace

Instruction* DynamicReshape(Builder& b, std::span<Instruction* const> operands,
                            const Shape& shape) {
  Instruction* x = operands[0];
  const Shape from = x->shape();
  if (!Fits(operands, shape)) {
    return b.Fail(InvalidArgument("has operand ", from, ", and other sizes than ", shape));
  }
  std::vector<Dimension> whole;
  for (int64_t size : shape.dims()) whole.emplace_back(size);
  const Shape places(ElementType::kS64, whole);
  auto spread = [&](Instruction* size) {
    return b.Spread(places, b.Convert(size, ElementType::kS64));
  };
  // The number of each element of the result.
  Instruction* number = b.Number(places, 0);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    number =
        b.Plus(b.Times(number, spread(operands[static_cast<size_t>(d) + 1])), b.Iota(places, d));
  }
  // Where the operand has it in the memory of its bounds.
  Instruction* place = from.is_static() ? number : b.Number(places, 0);
  const std::vector<int64_t> strides = RowMajorStrides(from.dims());
  for (int64_t d = from.rank(); !from.is_static() && d-- > 0;) {
    Instruction* size =
        spread(b.Add(Opcode::kGetDimensionSize, {operands[0]}, {{Attr::kDimensions, Ints{d}}}));
    Instruction* at = b.Binary(Opcode::kRemainder, number, size);
    const auto stride = static_cast<double>(strides[static_cast<size_t>(d)]);
    place = b.Plus(place, b.Times(at, b.Number(places, stride)));
    number = b.Over(number, size);
    if (from.dimension(d).is_bounded()) {
      const int64_t bound = from.dim(d);
      x = b.WithSize(x, d, b.Scalar(ElementType::kS32, static_cast<double>(bound)), bound);
    }
  }
  const int64_t count = Product(from.dims());
  Instruction* result = b.Zeros(Shape(shape.type(), whole));
  if (count > 0) {
    result = b.Add(Opcode::kGather, {b.Reshape(x, {Dimension(count)}), place},
                   {{Attr::kOffsetDims, Ints{}},
                    {Attr::kCollapsedSliceDims, Ints{0}},
                    {Attr::kStartIndexMap, Ints{0}},
                    {Attr::kIndexVectorDim, shape.rank()},
                    {Attr::kSliceSizes, Ints{1}}});
  }
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.dimension(d).is_bounded()) continue;
    Instruction* size = b.Convert(operands[static_cast<size_t>(d) + 1], ElementType::kS32);
    result = b.WithSize(result, d, size, shape.dimension(d));
  }
  return result;
}

}  // namespace kiln::ir
