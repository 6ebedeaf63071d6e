// Ops that put elements in order: gathers by the positions of the elements. t is the tangent.
#include "grad/sort.h"

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

bool CountsAlong(const Instruction* x, int64_t d) {
  return x->opcode() == Opcode::kIota && IsInteger(x->shape().type()) &&
         BitWidth(x->shape().type()) >= 32 && x->attributes().Int(Attr::kIotaDimension) == d;
}

namespace {

// x[..., p, ...] for each position p along dimension d; positions have the dimensions of the
// result.
Instruction* TakeAlong(Builder& b, Instruction* x, Instruction* positions, int64_t d) {
  const int64_t rank = x->shape().rank();
  Ints others, sizes;
  for (int64_t k = 0; k < rank; ++k) {
    if (k != d) others.push_back(k);
    sizes.push_back(x->shape().dim(k) == 0 ? 0 : 1);
  }
  return b.Add(Opcode::kGather, {x, positions},
               {{Attr::kOffsetDims, Ints()},
                {Attr::kCollapsedSliceDims, Ints{d}},
                {Attr::kStartIndexMap, Ints{d}},
                {Attr::kOperandBatchingDims, others},
                {Attr::kStartIndicesBatchingDims, others},
                {Attr::kIndexVectorDim, rank},
                {Attr::kSliceSizes, std::move(sizes)}});
}

// The positions of the sorted elements along the dimension: of an operand that counts the sorted
// numbers, else those of one more operand, which the comparator does not read.
Instruction* SortedPositions(Builder& b, Instruction* sort) {
  const int64_t d = sort->dimensions()[0];
  for (int64_t k = 0; k < sort->operand_count(); ++k) {
    if (CountsAlong(sort->operand(k), d)) return b.Element(sort, k);
  }
  Instruction* first = sort->operand(0);
  const ElementType type =
      first->shape().dim(d) <= INT32_MAX ? ElementType::kS32 : ElementType::kS64;
  ir::Computation* comparator =
      b.computation()->parent()->CloneComputation(*sort->called(0), sort->called(0)->name());
  Builder inside(comparator);
  inside.Parameter(Shape::Scalar(type));
  inside.Parameter(Shape::Scalar(type));
  std::vector<Instruction*> operands(sort->operands().begin(), sort->operands().end());
  operands.push_back(b.IotaLike(first, type, d));
  Instruction* sorted =
      b.Add(Opcode::kSort, std::move(operands), sort->attributes(), std::nullopt, {comparator});
  return b.Element(sorted, sort->operand_count());
}

}  // namespace

// sort(x, ...) = x[p], where p are the sorted positions: t[p]
template <>
Derivative Tangent<Opcode::kSort>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* positions = SortedPositions(b, op);
  Derivative tangent;
  for (Instruction* x : op->operands()) {
    Instruction* t = forward.TangentOf(x).array;
    tangent.elements.push_back({t ? TakeAlong(b, t, positions, op->dimensions()[0]) : nullptr});
  }
  return op->shape().is_array() ? tangent.elements[0] : tangent;
}

// topk(x) = x[p], p: t[p]
template <>
Derivative Tangent<Opcode::kTopK>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* t = forward.TangentOf(op->operand(0)).array;
  const int64_t last = t->shape().rank() - 1;
  return {.elements = {{TakeAlong(b, t, b.Element(op, 1), last)}}};
}

}  // namespace kiln::grad
