#include "passes/expand/bounded.h"

#include <algorithm>

#include "ir/analysis/effects.h"
#include "passes/expand/sized.h"
#include "passes/expand/type_legalisation.h"
#include "tensor/tolerance.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using expand::Sized;
using ir::Instruction;

using Sizes = std::vector<Instruction*>;
using Values = Result<std::vector<Sized>>;

Values One(Instruction* array, Sizes sizes) {
  return std::vector<Sized>{{array, std::move(sizes)}};
}

// The op does the same at each index of the bounded dimensions, and moves elements along constant
// ones only: elements beyond the sizes stay apart.
Values Along(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  Instruction* array = OnArrays(b, i, ArraysOf(operands));
  return One(array,
             SizesBy(b, operands, array->shape().rank(), [](size_t, int64_t d) { return d; }));
}

// Of two sizes the smaller, but for 1, by XLA's rule for elementwise ops: x's only element is
// repeated.
Instruction* Common(Builder& b, Instruction* x, Instruction* y) {
  Instruction* smaller = b.Binary(Opcode::kMinimum, x, y);
  Instruction* is_one = b.Compare(Direction::kEq, smaller, S32(b, 1));
  return b.Select(is_one, b.Binary(Opcode::kMaximum, x, y), smaller);
}

// x => select(size(x) = 1 and size != 1, broadcast(x[0]), x)   along dimension d
Instruction* OfSize(Builder& b, const Sized& x, Instruction* array, int64_t d, Instruction* size) {
  std::vector<SliceDimension> first;
  Ints kept;
  for (int64_t k = 0; k < x.rank(); ++k) {
    first.push_back({0, k == d ? 1 : x.shape().dim(k), 1});
    if (k != d) kept.push_back(k);
  }
  Instruction* slice = b.Slice(array, std::move(first));
  std::vector<Dimension> sizes = slice->shape().dimensions();
  sizes.erase(sizes.begin() + d);
  Instruction* repeated = b.BroadcastLike(array, b.Reshape(slice, std::move(sizes)), kept);
  Instruction* repeats = b.And(b.Compare(Direction::kEq, x.size(d), S32(b, 1)),
                               b.Compare(Direction::kNe, x.size(d), size));
  return b.Select(b.Spread(array->shape(), repeats), repeated, array);
}

Values Elementwise(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const int64_t rank = i->shape().rank();
  std::vector<Instruction*> arrays = ArraysOf(operands);
  Sizes sizes(static_cast<size_t>(rank));
  // Scalars beside arrays are repeated anyway.
  auto size_of = [&](size_t o, int64_t d) {
    return operands[o].rank() == rank ? operands[o].size(d) : nullptr;
  };
  for (int64_t d = 0; d < rank; ++d) {
    Instruction*& common = sizes[static_cast<size_t>(d)];
    bool differ = false;
    for (size_t o = 0; o < operands.size(); ++o) {
      Instruction* size = size_of(o, d);
      if (!size || size == common) continue;
      differ |= common != nullptr;
      common = common ? Common(b, common, size) : size;
    }
    for (size_t o = 0; differ && o < operands.size(); ++o) {
      if (size_of(o, d) && operands[o].shape().dim(d) > 1) {
        arrays[o] = OfSize(b, operands[o], arrays[o], d, common);
      }
    }
  }
  return One(OnArrays(b, i, std::move(arrays)), std::move(sizes));
}

Values Broadcast(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Ints& dimensions = i->dimensions();
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    if (i->shape().dimension(d).is_bounded() && !std::ranges::count(dimensions, d)) {
      return HasNoCode(i, operands);
    }
  }
  Sizes sizes = SizesBy(b, operands, i->shape().rank(),
                        [&](size_t, int64_t d) { return dimensions[static_cast<size_t>(d)]; });
  return One(OnArrays(b, i, ArraysOf(operands)), std::move(sizes));
}

Values Transpose(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  Sizes sizes;
  for (int64_t d : i->dimensions()) sizes.push_back(operands[0].size(d));
  return One(OnArrays(b, i, ArraysOf(operands)), std::move(sizes));
}

Values GetDimensionSize(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  return One(SizeOf(b, operands[0], i->dimensions()[0]), {});
}

// Ops on matrices or lines in the last `count` dimensions, which must be constants.
Values OnLast(Builder& b, const Instruction* i, const std::vector<Sized>& operands, int64_t count) {
  for (const Sized& operand : operands) {
    for (int64_t d = std::max<int64_t>(operand.rank() - count, 0); d < operand.rank(); ++d) {
      if (operand.size(d)) return HasNoCode(i, operands);
    }
  }
  if (!i->shape().is_tuple()) return Along(b, i, operands);
  Instruction* all = OnArrays(b, i, ArraysOf(operands));
  std::vector<Sized> results;
  for (size_t k = 0; k < i->shape().elements().size(); ++k) {
    results.push_back({b.Element(all, static_cast<int64_t>(k)), operands[0].sizes});
  }
  return results;
}

// check(x, y) => check(size(x), size(y)), check(x, y)   where absent elements count as equal
Values Check(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Result<std::optional<Tolerance>> tolerance = ToleranceOfCheck(
      i->attributes().Text(Attr::kCustomCallTarget), i->attributes().Text(Attr::kBackendConfig));
  if (!tolerance.ok() || !*tolerance || (*tolerance)->min_ulps > 0 || operands.size() != 2 ||
      operands[0].rank() != operands[1].rank()) {
    return HasNoCode(i, operands);
  }
  std::vector<Instruction*> arrays;
  std::vector<SliceDimension> common;
  for (int64_t d = 0; d < operands[0].rank(); ++d) {
    common.push_back({0, std::min(operands[0].shape().dim(d), operands[1].shape().dim(d)), 1});
    if (!operands[0].size(d) && !operands[1].size(d)) continue;
    ir::InstructionSpec spec{.opcode = Opcode::kCustomCall};
    for (const Sized& x : operands) spec.operands.push_back(SizeOf(b, x, d));
    spec.attributes = {{Attr::kCustomCallTarget, std::string("check.expect_eq")},
                       {Attr::kCustomCallHasSideEffect, true}};
    spec.shape = Shape::Tuple({});
    spec.name = Cat(i->name(), ".size");
    b.computation()->Create(std::move(spec), b.before());
  }
  for (const Sized& x : operands) {
    Instruction* filled = ZeroFilled(b, x, AllDimensions(x));
    arrays.push_back(b.Add(Opcode::kSlice, {filled}, {{Attr::kSlice, common}}));
  }
  return One(OnArrays(b, i, std::move(arrays)), {});
}

Values ValueOn(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  switch (i->opcode()) {
    case Opcode::kBroadcast:
      return Broadcast(b, i, operands);
    case Opcode::kTranspose:
      return Transpose(b, i, operands);
    case Opcode::kGetDimensionSize:
      return GetDimensionSize(b, i, operands);
    case Opcode::kSetDimensionSize:
      return SizedSetDimensionSize(b, i, operands);
    case Opcode::kBitcast:
    case Opcode::kReshape:
      return SizedReshape(b, i, operands);
    case Opcode::kReverse:
      return SizedReverse(b, i, operands);
    case Opcode::kConcatenate:
      return SizedConcatenate(b, i, operands);
    case Opcode::kReduce:
      return SizedReduce(b, i, operands);
    case Opcode::kDot:
      return SizedDot(b, i, operands);
    case Opcode::kSort:
      return SizedSort(b, i, operands);
    case Opcode::kDynamicSlice:
      return SizedDynamicSlice(b, i, operands);
    case Opcode::kDynamicUpdateSlice:
      return SizedDynamicUpdateSlice(b, i, operands);
    case Opcode::kGather:
      return SizedGather(b, i, operands);
    case Opcode::kScatter:
      return SizedScatter(b, i, operands);
    case Opcode::kTopK:
      return OnLast(b, i, operands, 1);
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
      return OnLast(b, i, operands, 2);
    case Opcode::kFft:
      return OnLast(b, i, operands, std::ssize(i->attributes().IntsOf(Attr::kFftLength)));
    // Inference takes bounded dimensions whole.
    case Opcode::kBitcastConvert:
    case Opcode::kMap:
    case Opcode::kPad:
    case Opcode::kSlice:
      return Along(b, i, operands);
    case Opcode::kReduceWindow:
      return i->shape().is_tuple() ? OnLast(b, i, operands, 0) : Along(b, i, operands);
    case Opcode::kCustomCall:
      if (ir::IsMarker(*i) && operands.size() == 1 && !i->shape().is_tuple()) return operands;
      return Check(b, i, operands);
    default:
      if (IsElementwise(i->opcode())) return Elementwise(b, i, operands);
      return HasNoCode(i, operands);
  }
}

class BoundedExpansion : public expand::TypeLegalisation {
 public:
  using TypeLegalisation::TypeLegalisation;

 protected:
  Status Prepare() override { return PrepareBounded(module_); }

  bool Maps(const Shape& leaf) const override {
    return std::ranges::any_of(leaf.dimensions(), &Dimension::is_bounded);
  }
  // The array, and a size for each bounded dimension.
  Shape Mapped(const Shape& leaf) const override {
    std::vector<Shape> parts = {expand::WithBounds(leaf)};
    for (const Dimension& d : leaf.dimensions()) {
      if (d.is_bounded()) parts.push_back(Shape::Scalar(ElementType::kS32));
    }
    return Shape::Tuple(std::move(parts));
  }

  // There are none in memory: Prepare has seen to it.
  Instruction* FromMemory(Builder& b, Instruction* leaf) override { return leaf; }
  Instruction* ToMemory(Builder& b, Instruction* mapped, const Shape& leaf) override {
    return mapped;
  }

  Result<Instruction*> ValueOf(Builder& b, Instruction* i, const Shape& shape) override {
    std::vector<Sized> operands;
    for (Instruction* operand : i->operands()) {
      const Shape* before = Before(operand);
      if (!(before ? *before : operand->shape()).is_array()) return expand::HasNoCode(i, {});
      operands.push_back(PartsOf(b, operand, before));
    }
    KILN_ASSIGN_OR_RETURN(std::vector<Sized> results, ValueOn(b, i, operands));
    // A call without results is one itself.
    if (shape == Shape::Tuple({})) return results[0].array;
    if (!shape.is_tuple()) return Joined(b, results[0], shape);
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < results.size(); ++k) {
      elements.push_back(Joined(b, results[k], shape.elements()[k]));
    }
    return b.Tuple(std::move(elements));
  }

 private:
  static Sized PartsOf(Builder& b, Instruction* x, const Shape* before) {
    if (!before) return {x, Sizes(static_cast<size_t>(x->shape().rank()))};
    Sized parts{b.Element(x, 0), {}};
    int64_t next = 1;
    for (const Dimension& d : before->dimensions()) {
      parts.sizes.push_back(d.is_bounded() ? b.Element(x, next++) : nullptr);
    }
    return parts;
  }

  Instruction* Joined(Builder& b, const Sized& x, const Shape& shape) const {
    if (!Maps(shape)) return x.array;
    std::vector<Instruction*> parts = {b.InLayout(x.array, expand::WithBounds(shape))};
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (shape.dimension(d).is_bounded()) parts.push_back(SizeOf(b, x, d));
    }
    return b.Tuple(std::move(parts));
  }
};

}  // namespace

Result<bool> ExpandBounded(ir::Module& module, const PassContext& context) {
  return BoundedExpansion(module).Run(context);
}

}  // namespace kiln::passes
