// Ops that read or write slices at places in other operands, in arrays with absent elements.
#include <algorithm>

#include "ops/gather_scatter.h"
#include "passes/expand/sized.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

using Values = Result<std::vector<Sized>>;

Values One(Instruction* array, std::vector<Instruction*> sizes) {
  return std::vector<Sized>{{array, std::move(sizes)}};
}

// s64[]: the last place where a slice of `size` elements along a dimension may begin.
Instruction* LastStart(Builder& b, const Sized& x, int64_t d, int64_t size) {
  const Shape s64 = Shape::Scalar(ElementType::kS64);
  if (!x.size(d)) return b.Number(s64, static_cast<double>(x.shape().dim(d) - size));
  Instruction* there = b.Convert(x.size(d), ElementType::kS64);
  Instruction* last = b.Minus(there, b.Number(s64, static_cast<double>(size)));
  return b.Binary(Opcode::kMaximum, last, b.Number(last, 0));
}

// Integers as s64, the largest of u64 as its largest.
Instruction* AsS64(Builder& b, Instruction* x) {
  if (x->shape().type() == ElementType::kU64) {
    x = b.Binary(Opcode::kMinimum, x, b.Number(x, 0x1p62));
  }
  return b.Convert(x, ElementType::kS64);
}

// Starts of slices of `sizes` in x, moved so that the slices are where something is.
std::vector<Instruction*> StartsIn(Builder& b, const Sized& x, const std::vector<Sized>& operands,
                                   size_t first, const Ints& sizes) {
  std::vector<Instruction*> starts;
  for (size_t d = 0; d < sizes.size(); ++d) {
    Instruction* start = AsS64(b, operands[first + d].array);
    starts.push_back(Clamped(b, start, 0, LastStart(b, x, static_cast<int64_t>(d), sizes[d])));
  }
  return starts;
}

// An array like the indices: for each component of an index vector, `of` its dimension of the
// operand.
Instruction* ByComponent(Builder& b, const Instruction* i, const Shape& indices,
                         const std::function<Instruction*(int64_t d)>& of) {
  const Ints& start_map = i->attributes().IntsOf(SliceAttributesOf(i->opcode()).start_map);
  const int64_t vector_dim = i->attributes().Int(Attr::kIndexVectorDim);
  if (vector_dim == indices.rank()) return b.Spread(indices, of(start_map[0]));
  std::vector<Instruction*> components;
  for (int64_t d : start_map) components.push_back(b.Reshape(of(d), {1}));
  Instruction* vector = components.size() == 1 ? components[0] : b.Concatenate(components, 0);
  return b.Add(Opcode::kBroadcast, {vector}, {{Attr::kDimensions, Ints{vector_dim}}}, indices);
}

// The bounded dimensions along which the slices have constant sizes.
bool IsPart(const Sized& x, int64_t d, int64_t size) {
  return x.size(d) && size != x.shape().dim(d);
}

}  // namespace

Values SizedDynamicSlice(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Sized& x = operands[0];
  const Ints& sizes = i->attributes().IntsOf(Attr::kDynamicSliceSizes);
  std::vector<Instruction*> arrays = ArraysOf(operands), left = x.sizes;
  Ints parts;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!IsPart(x, d, sizes[static_cast<size_t>(d)])) continue;
    parts.push_back(d);
    left[static_cast<size_t>(d)] = nullptr;
  }
  if (!parts.empty()) {
    // Where there is less than the slice takes, it goes on with zeros.
    arrays = StartsIn(b, x, operands, 1, sizes);
    arrays.insert(arrays.begin(), ZeroFilled(b, x, parts));
  }
  return One(OnArrays(b, i, std::move(arrays)), std::move(left));
}

// An update along a bounded dimension is of all of it, or of a constant part.
Values SizedDynamicUpdateSlice(Builder& b, const Instruction* i,
                               const std::vector<Sized>& operands) {
  const Sized &x = operands[0], &update = operands[1];
  Ints sizes = update.shape().dims();
  std::vector<Instruction*> arrays = ArraysOf(operands);
  bool part = false;
  for (int64_t d = 0; d < x.rank(); ++d) part |= x.size(d) && !update.size(d);
  if (part) {
    arrays = StartsIn(b, x, operands, 2, sizes);
    arrays.insert(arrays.begin(), {x.array, update.array});
  }
  std::vector<Instruction*> left = SizesBy(
      b, {x, update}, x.rank(), [&](size_t o, int64_t d) { return o == 0 || x.size(d) ? d : -1; });
  return One(OnArrays(b, i, std::move(arrays)), std::move(left));
}

Values SizedGather(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Sized &x = operands[0], &indices = operands[1];
  const Ints& sizes = i->attributes().IntsOf(Attr::kSliceSizes);
  const SliceMap map = SliceMapOf(i->opcode(), i->attributes(), x.rank(), indices.rank());
  Ints parts;
  bool moves = false;
  for (int64_t d = 0; d < x.rank(); ++d) {
    // Along dimensions of batches there is as much of the operand as of the indices.
    if (map.batch[static_cast<size_t>(d)] >= 0) continue;
    if (!IsPart(x, d, sizes[static_cast<size_t>(d)])) continue;
    parts.push_back(d);
    moves |= map.component[static_cast<size_t>(d)] >= 0;
  }
  Instruction *array = ZeroFilled(b, x, parts), *starts = indices.array;
  if (moves) {
    starts = AsS64(b, starts);
    Instruction* last = ByComponent(b, i, starts->shape(), [&](int64_t d) {
      return LastStart(b, x, d, sizes[static_cast<size_t>(d)]);
    });
    starts = b.Add(Opcode::kClamp, {b.Number(starts, 0), starts, last});
  }
  auto place = [&](size_t o, int64_t d) {
    if (o == 1) return map.outside[static_cast<size_t>(d)];
    const bool whole = !IsPart(x, d, sizes[static_cast<size_t>(d)]);
    return whole ? map.slice[static_cast<size_t>(d)] : -1;
  };
  array = OnArrays(b, i, {array, starts});
  return One(array, SizesBy(b, operands, array->shape().rank(), place));
}

// Absent index vectors, and those whose slices reach beyond the sizes, become -1: their slices
// are skipped.
Values SizedScatter(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const size_t n = operands.size() / 2;
  const Sized &indices = operands[n], &update = operands[n + 1];
  const SliceMap map = SliceMapOf(i->opcode(), i->attributes(), operands[0].rank(), indices.rank());
  Sized x{operands[0].array,
          SizesBy(b, {operands.begin(), operands.begin() + static_cast<int64_t>(n)},
                  operands[0].rank(), [](size_t, int64_t d) { return d; })};
  // As many vectors are there as slices.
  std::vector<Sized> pairs = {indices};
  pairs.insert(pairs.end(), operands.begin() + static_cast<int64_t>(n) + 1, operands.end());
  Sized vectors{AsS64(b, indices.array),
                SizesBy(b, pairs, indices.rank(), [&](size_t o, int64_t d) {
                  if (o == 0) return d;
                  const auto outside = std::ranges::find(map.outside, d) - map.outside.begin();
                  return outside < std::ssize(map.outside) ? outside : int64_t{-1};
                })};
  Instruction* inside = IsThere(b, vectors, AllDimensions(vectors));
  auto also = [&](Instruction* condition) {
    inside = inside ? b.And(inside, condition) : condition;
  };
  bool parts = false;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t dim = map.slice[static_cast<size_t>(d)];
    if (!x.size(d) || map.batch[static_cast<size_t>(d)] >= 0) continue;
    if (dim >= 0 && update.size(dim)) {
      // Slices are of all that is there.
      Instruction*& size = x.sizes[static_cast<size_t>(d)];
      size = b.Binary(Opcode::kMinimum, size, update.size(dim));
    } else if (map.component[static_cast<size_t>(d)] >= 0) {
      parts = true;
    } else {
      // Slices begin at 0.
      Instruction* fits = b.Compare(Direction::kGe, x.size(d), S32(b, update.shape().dim(dim)));
      also(b.Spread(vectors.shape(), fits));
    }
  }
  if (inside || parts) {
    if (i->attributes().IntsOf(Attr::kScatterDimsToOperandDims).empty()) {
      return HasNoCode(i, operands);
    }
  }
  if (parts) {
    Instruction* limit = ByComponent(b, i, vectors.shape(), [&](int64_t d) {
      const int64_t dim = map.slice[static_cast<size_t>(d)];
      const int64_t size = dim >= 0 ? update.shape().dim(dim) : 1;
      if (dim >= 0 && update.size(dim)) {
        return b.Number(Shape::Scalar(ElementType::kS64), 0);
      }
      // Not less than 0 only where the slice fits.
      Instruction* all = b.Convert(SizeOf(b, x, d), ElementType::kS64);
      return b.Minus(all, b.Number(all, static_cast<double>(size)));
    });
    also(b.Compare(Direction::kLe, vectors.array, limit));
  }
  std::vector<Instruction*> arrays = ArraysOf(operands);
  if (inside) {
    arrays[n] = b.Select(inside, vectors.array, b.Number(vectors.array, -1));
  }
  Instruction* value = OnArrays(b, i, std::move(arrays));
  if (inside) value->mutable_attributes().Set(Attr::kIndicesAreSorted, false);
  std::vector<Sized> results;
  for (size_t k = 0; k < n; ++k) {
    Instruction* element =
        value->shape().is_tuple() ? b.Element(value, static_cast<int64_t>(k)) : value;
    results.push_back({element, x.sizes});
  }
  return results;
}

}  // namespace kiln::passes::expand
