// Ops that move elements along dimensions with absent elements.
#include <algorithm>

#include "passes/expand/sized.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

using Values = Result<std::vector<Sized>>;

Values One(Instruction* array, std::vector<Instruction*> sizes) {
  return std::vector<Sized>{{array, std::move(sizes)}};
}

std::vector<int64_t> BoundedOf(const Shape& shape) {
  std::vector<int64_t> bounded;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d).is_bounded()) bounded.push_back(d);
  }
  return bounded;
}

// Whether between bounded dimensions there are as many elements of constant ones before and after.
// Then each element keeps its place in the memory of the bounds, whatever the sizes.
bool KeepsPlaces(const Shape& from, const Shape& to) {
  auto groups = [](const Shape& shape) {
    std::vector<int64_t> groups = {1};
    for (const Dimension& d : shape.dimensions()) {
      groups.back() *= d.is_bounded() ? 1 : d.size();
      if (d.is_bounded()) groups.insert(groups.end(), {-d.size(), 1});
    }
    return groups;
  };
  return groups(from) == groups(to);
}

// The elements one by one, by their ordinals among the defined ones.
Instruction* Rearranged(Builder& b, const Sized& x, const Shape& to,
                        const std::vector<Instruction*>& sizes) {
  const Shape places(ElementType::kS64, to.dimensions());
  auto spread = [&](const Sized& of, int64_t d) {
    return b.Spread(places, b.Convert(SizeOf(b, of, d), ElementType::kS64));
  };
  const Sized result{b.Number(places, 0), sizes};
  // The number of the result's element in that order.
  Instruction* number = result.array;
  for (int64_t d = 0; d < to.rank(); ++d) {
    Instruction* at = b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, d}}, places);
    number = b.Plus(b.Times(number, spread(result, d)), at);
  }
  // Where the operand has the element of that number.
  Instruction* place = result.array;
  const std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  for (int64_t d = x.rank(); d-- > 0;) {
    Instruction* size = spread(x, d);
    Instruction* at = b.Binary(Opcode::kRemainder, number, size);
    Instruction* stride = b.Number(places, static_cast<double>(strides[static_cast<size_t>(d)]));
    place = b.Plus(place, b.Times(at, stride));
    number = b.Over(number, size);
  }
  Instruction* flat = b.Reshape(x.array, {Product(x.shape().dims())});
  return b.Add(Opcode::kGather, {flat, place},
               {{Attr::kOffsetDims, Ints{}},
                {Attr::kCollapsedSliceDims, Ints{0}},
                {Attr::kStartIndexMap, Ints{0}},
                {Attr::kIndexVectorDim, to.rank()},
                {Attr::kSliceSizes, Ints{1}}});
}

}  // namespace

Values SizedReshape(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Sized& x = operands[0];
  Shape from = x.shape();
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (x.size(d)) from.set_dimension(d, Dimension::Bounded(from.dim(d)));
  }
  const Shape& to = i->shape();
  const bool retypes = to.type() != x.shape().type();
  if (retypes && ByteWidth(to.type()) != ByteWidth(from.type())) return HasNoCode(i, operands);
  const std::vector<int64_t> before = BoundedOf(from), after = BoundedOf(to);
  auto same = [&](int64_t f, int64_t t) { return from.dimension(f) == to.dimension(t); };
  const bool in_order = std::ranges::equal(before, after, same);
  std::vector<Instruction*> sizes(static_cast<size_t>(to.rank()));
  for (size_t k = 0; k < after.size(); ++k) {
    auto of_bound = [&](int64_t f) { return same(f, after[k]); };
    // Equal bounds in another order are ambiguous.
    if (!in_order && std::ranges::count_if(before, of_bound) != 1) return HasNoCode(i, operands);
    const int64_t f = in_order ? before[k] : *std::ranges::find_if(before, of_bound);
    sizes[static_cast<size_t>(after[k])] = x.size(f);
  }
  const Shape whole = WithBounds(to);
  Instruction* array = nullptr;
  if (KeepsPlaces(from, to)) {
    array = b.Reshape(x.array, whole.dimensions());
  } else if (Product(whole.dims()) == 0) {
    array = b.Number(whole, 0);
  } else {
    array = Rearranged(b, x, whole, sizes);
  }
  // A bitcast to another type, now of the same dimensions.
  if (retypes) array = OnArrays(b, i, {array});
  return One(array, std::move(sizes));
}

// The defined elements are last when reversed, and then moved to the front.
Values SizedReverse(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Sized& x = operands[0];
  Instruction* array = OnArrays(b, i, ArraysOf(operands));
  std::vector<PaddingDimension> padding(static_cast<size_t>(x.rank()));
  std::vector<Instruction*> starts(padding.size(), S32(b, 0));
  bool moves = false;
  for (int64_t d : i->dimensions()) {
    if (!x.size(d)) continue;
    const int64_t bound = x.shape().dim(d);
    if (bound > INT32_MAX / 2) return HasNoCode(i, operands);
    padding[static_cast<size_t>(d)].high = bound;
    starts[static_cast<size_t>(d)] = b.Minus(S32(b, bound), x.size(d));
    moves = true;
  }
  if (moves) {
    Instruction* zero = b.Constant(Literal(Shape::Scalar(array->shape().type())));
    std::vector<Instruction*> slice = {
        b.Add(Opcode::kPad, {array, zero}, {{Attr::kPadding, std::move(padding)}})};
    slice.insert(slice.end(), starts.begin(), starts.end());
    array = b.Add(Opcode::kDynamicSlice, std::move(slice),
                  {{Attr::kDynamicSliceSizes, x.shape().dims()}});
  }
  return One(array, x.sizes);
}

// Each operand is written behind the defined elements of the preceding ones, over their undefined
// ones.
Values SizedConcatenate(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> sizes = SizesBy(b, operands, i->shape().rank(),
                                            [&](size_t, int64_t d) { return d == along ? -1 : d; });
  if (std::ranges::none_of(operands, [&](const Sized& x) { return x.size(along) != nullptr; })) {
    return One(OnArrays(b, i, ArraysOf(operands)), std::move(sizes));
  }
  const Shape whole = WithBounds(i->shape());
  if (whole.dim(along) > INT32_MAX) return HasNoCode(i, operands);
  Instruction* array = b.Zeros(whole);
  Instruction *zero = S32(b, 0), *at = zero;
  for (const Sized& x : operands) {
    std::vector<Instruction*> update = {array, x.array};
    for (int64_t d = 0; d < whole.rank(); ++d) update.push_back(d == along ? at : zero);
    array = b.Add(Opcode::kDynamicUpdateSlice, std::move(update));
    at = b.Plus(at, SizeOf(b, x, along));
  }
  sizes[static_cast<size_t>(along)] = at;
  return One(array, std::move(sizes));
}

// New elements are zero.
bool IsSize(const Instruction& i, int64_t size) {
  return i.IsConstant() && i.literal().AsInt(0) == size;
}

Values SizedSetDimensionSize(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Sized& x = operands[0];
  const int64_t along = i->dimensions()[0], bound = x.shape().dim(along);
  Instruction* array = ZeroFilled(b, x, {along});
  std::vector<Instruction*> sizes = x.sizes;
  Instruction*& size = sizes[static_cast<size_t>(along)];
  size = nullptr;
  if (i->shape().dimension(along).is_bounded() || !IsSize(*i->operand(1), bound)) {
    const int64_t most = std::min<int64_t>(bound, INT32_MAX);
    size = Clamped(b, operands[1].array, 0, S32(b, most));
  }
  Sized result{array, std::move(sizes)};
  if (!i->shape().dimension(along).is_bounded()) {
    result.array = ZeroFilled(b, result, {along});
    result.sizes[static_cast<size_t>(along)] = nullptr;
  }
  return std::vector<Sized>{std::move(result)};
}

}  // namespace kiln::passes::expand
