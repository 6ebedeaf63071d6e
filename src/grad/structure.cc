// Transposes of ops that move elements.
#include <algorithm>

#include "grad/rules.h"
#include "ops/other_dimensions.h"

namespace kiln::grad {

using ir::Instruction;

#define KILN_TRANSPOSE(Name)                                           \
  template <>                                                          \
  bool Transpose<Opcode::k##Name>(Reverse & reverse, Instruction * op, \
                                  const Derivative& cotangent)

KILN_TRANSPOSE(Reshape) {
  Instruction* x = op->operand(0);
  reverse.Add(x, reverse.builder().Reshape(cotangent.array, x->shape().dimensions()));
  return true;
}
KILN_TRANSPOSE(Bitcast) { return Transpose<Opcode::kReshape>(reverse, op, cotangent); }

// The sum over the new dimensions, then the order of the operand's.
KILN_TRANSPOSE(Broadcast) {
  Builder& b = reverse.builder();
  const Ints& kept = op->dimensions();
  Ints added = OtherDimensions(op->shape().rank(), kept);
  Instruction* t = cotangent.array;
  if (!added.empty()) t = b.Sum(t, std::move(added));
  Ints order;  // of the operand's dimensions among those that are left
  for (int64_t d : kept) {
    order.push_back(std::ranges::count_if(kept, [&](int64_t other) { return other < d; }));
  }
  reverse.Add(op->operand(0), b.Transpose(t, std::move(order)));
  return true;
}

KILN_TRANSPOSE(Transpose) {
  const Ints& permutation = op->dimensions();
  Ints inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  }
  reverse.Add(op->operand(0), reverse.builder().Transpose(cotangent.array, std::move(inverse)));
  return true;
}

KILN_TRANSPOSE(Reverse) {
  Builder& b = reverse.builder();
  reverse.Add(op->operand(0), b.Add(Opcode::kReverse, {cotangent.array}, op->attributes()));
  return true;
}

// Each operand has its slice.
KILN_TRANSPOSE(Concatenate) {
  Builder& b = reverse.builder();
  const auto dimension = static_cast<size_t>(op->dimensions()[0]);
  std::vector<SliceDimension> slices;
  for (int64_t size : op->shape().dims()) slices.push_back({0, size, 1});
  int64_t start = 0;
  for (Instruction* x : op->operands()) {
    const int64_t end = start + x->shape().dim(op->dimensions()[0]);
    slices[dimension].start = start;
    slices[dimension].limit = end;
    if (reverse.IsActive(x)) reverse.Add(x, b.Slice(cotangent.array, slices));
    start = end;
  }
  return true;
}

// Zeros between and around the elements.
KILN_TRANSPOSE(Slice) {
  Builder& b = reverse.builder();
  const std::vector<SliceDimension>& slices = op->attributes().Slices(Attr::kSlice);
  const Shape& to = op->operand(0)->shape();
  std::vector<PaddingDimension> padding;
  for (size_t d = 0; d < slices.size(); ++d) {
    const int64_t count = op->shape().dim(static_cast<int64_t>(d));
    const int64_t end =
        count == 0 ? slices[d].start : slices[d].start + (count - 1) * slices[d].stride + 1;
    padding.push_back(
        {slices[d].start, to.dim(static_cast<int64_t>(d)) - end, slices[d].stride - 1});
  }
  reverse.Add(op->operand(0), b.Add(Opcode::kPad, {cotangent.array, b.Scalar(to.type(), 0)},
                                    {{Attr::kPadding, std::move(padding)}}));
  return true;
}

// The operand's elements that are in the result; the others have no cotangent. What is left of the
// sum belongs to the padding value.
KILN_TRANSPOSE(Pad) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *value = op->operand(1), *t = cotangent.array;
  const std::vector<PaddingDimension>& padding = op->attributes().Padding(Attr::kPadding);
  // Edges first: cut off what is around, fill what was cut off.
  std::vector<PaddingDimension> edges;
  std::vector<SliceDimension> slices;
  for (size_t d = 0; d < padding.size(); ++d) {
    edges.push_back({-padding[d].low, -padding[d].high, 0});
    const int64_t size = x->shape().dim(static_cast<int64_t>(d)), step = padding[d].interior + 1;
    slices.push_back({0, size == 0 ? 0 : (size - 1) * step + 1, step});
  }
  Instruction* own = b.Add(Opcode::kPad, {t, b.Scalar(t->shape().type(), 0)},
                           {{Attr::kPadding, std::move(edges)}});
  own = b.Slice(own, std::move(slices));
  reverse.Add(x, own);
  if (reverse.IsActive(value)) {
    reverse.Add(value, b.Minus(b.SumOfAll(t), b.SumOfAll(own)));
  }
  return true;
}

namespace {

std::vector<Instruction*> With(std::vector<Instruction*> first, const Instruction* op,
                               int64_t starts) {
  first.insert(first.end(), op->operands().begin() + starts, op->operands().end());
  return first;
}

}  // namespace

// dynamic-slice(x, i): dynamic-update-slice(0, t, i)
KILN_TRANSPOSE(DynamicSlice) {
  Builder& b = reverse.builder();
  Instruction* x = op->operand(0);
  reverse.Add(
      x, b.Add(Opcode::kDynamicUpdateSlice, With({b.Zeros(x->shape()), cotangent.array}, op, 1)));
  return true;
}

// dynamic-update-slice(x, u, i): x has dynamic-update-slice(t, 0, i), u has dynamic-slice(t, i)
KILN_TRANSPOSE(DynamicUpdateSlice) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *update = op->operand(1), *t = cotangent.array;
  if (reverse.IsActive(x)) {
    reverse.Add(x, b.Add(Opcode::kDynamicUpdateSlice, With({t, b.Zeros(update->shape())}, op, 2)));
  }
  if (reverse.IsActive(update)) {
    reverse.Add(update, b.Add(Opcode::kDynamicSlice, With({t}, op, 2),
                              {{Attr::kDynamicSliceSizes, update->shape().dims()}}));
  }
  return true;
}

// Of a cut operand: zeros where it was cut. Of an extended one: without what was new.
KILN_TRANSPOSE(SetDimensionSize) {
  Builder& b = reverse.builder();
  Instruction* x = op->operand(0);
  reverse.Add(x,
              b.Add(Opcode::kSetDimensionSize, {cotangent.array, b.SizeOf(x, op->dimensions()[0])},
                    op->attributes(), x->shape()));
  return true;
}

// The barrier holds in the derivative, too.
KILN_TRANSPOSE(OptBarrier) {
  Builder& b = reverse.builder();
  Instruction* x = op->operand(0);
  reverse.Add(x, b.Parts(b.Add(Opcode::kOptBarrier, {b.Whole(cotangent, x->shape())})));
  return true;
}

#undef KILN_TRANSPOSE

// Ops that hand an operand on.

template <>
Instruction* Expansion<Opcode::kPrint>(Builder&, Instruction* op) {
  return op->operand(0);
}
template <>
Instruction* Expansion<Opcode::kAssert>(Builder&, Instruction* op) {
  return op->operand(1);
}
template <>
Instruction* Expansion<Opcode::kAssign>(Builder&, Instruction* op) {
  return op->operand(0);
}
// The former value of the variable is no function of the operand.
template <>
Instruction* Expansion<Opcode::kAssignAdd>(Builder&, Instruction* op) {
  return op->operand(0);
}

}  // namespace kiln::grad
