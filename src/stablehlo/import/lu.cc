#include "stablehlo/import/factors.h"
#include "stablehlo/import/matrices.h"

#include <algorithm>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// x[batch, order[batch, row], ...]
Instruction* InOrder(Builder& b, Instruction* x, Instruction* order) {
  if (!x) return nullptr;
  Ints sizes = x->shape().dims(), offsets;
  sizes[0] = sizes[1] = 1;
  if (sizes.size() == 3) offsets = {2};
  return b.Add(Opcode::kGather, {x, order},
               {{Attr::kOffsetDims, offsets},
                {Attr::kCollapsedSliceDims, Ints{1}},
                {Attr::kStartIndexMap, Ints{1}},
                {Attr::kOperandBatchingDims, Ints{0}},
                {Attr::kStartIndicesBatchingDims, Ints{0}},
                {Attr::kIndexVectorDim, int64_t{2}},
                {Attr::kSliceSizes, sizes}});
}

Instruction* Part(Builder& b, Instruction* x, int64_t first, int64_t last) {
  if (!x) return nullptr;
  return b.Slice(x, {{0, x->shape().dim(0), 1}, {first, last, 1}});
}

// Step i: the largest element of column i from the diagonal down is the pivot. The pivot's row is
// swapped with row i; the elements below the pivot are divided by it, and the trailing submatrix is
// updated by the product of column and row.
Values Turn(Builder& b, Instruction* i, const Values& state) {
  Instruction *x = state[0], *pivots = state[1], *order = state[2], *info = state[3];
  const Shape matrix = x->shape();
  const ElementType type = matrix.type();
  const int64_t batch = matrix.dim(0), m = matrix.dim(1), n = matrix.dim(2);
  const Shape vector = ArrayShape(type, {batch, m});
  const Shape sizes = ArrayShape(PartOf(type), {batch, m});
  const Shape counts = ArrayShape(ElementType::kS32, {batch, m});
  const Shape preds = ArrayShape(ElementType::kPred, {batch, m});
  const Shape all_preds = ArrayShape(ElementType::kPred, {batch, m, n});

  // The first one of the largest.
  Instruction* column = ColumnAt(b, x, i);
  Instruction *rows = Places(b, {batch, m}, 1), *here = b.Spread(counts, i);
  Instruction* size =
      b.Select(b.Compare(Direction::kGe, rows, here), Magnitude(b, column), b.Number(sizes, -1));
  Instruction* largest = Along(b, sizes, b.Reduce(Opcode::kMaximum, size, -1, {1}), {0});
  const auto none = static_cast<double>(m);
  Instruction* pivot_row = b.Reduce(
      Opcode::kMinimum,
      b.Select(b.Compare(Direction::kEq, size, largest), rows, b.Number(counts, none)), none, {1});
  Instruction* pivot_index = b.Reshape(pivot_row, Ints{batch, 1});

  Instruction* is_row = b.Compare(Direction::kEq, rows, here);
  Instruction* is_pivot = b.Compare(Direction::kEq, rows, Along(b, counts, pivot_row, {0}));
  auto swap = [&](Instruction* old, Shape shape) {
    const bool is_matrix = shape.rank() == 3;
    auto spread = [&](Instruction* row) {
      return Along(b, shape, row, is_matrix ? Ints{0, 2} : Ints{0});
    };
    auto mask = [&](Instruction* p) { return is_matrix ? Along(b, all_preds, p, {0, 1}) : p; };
    Ints one_row = shape.dims();
    one_row.erase(one_row.begin() + 1);
    Instruction* at_pivot = b.Reshape(InOrder(b, old, pivot_index), one_row);
    Instruction* swapped = b.Select(mask(is_row), spread(at_pivot),
                                    b.Select(mask(is_pivot), spread(RowAt(b, old, i)), old));
    return std::pair(swapped, at_pivot);
  };
  Instruction *pivot = nullptr, *row = nullptr;
  std::tie(column, pivot) = swap(column, vector);
  std::tie(x, row) = swap(x, matrix);
  order = swap(order, counts).first;

  Instruction* is_zero = b.Compare(Direction::kEq, pivot, b.Number(ArrayShape(type, {batch}), 0));
  Instruction* below = b.Compare(Direction::kGt, rows, here);
  Instruction* divides =
      b.Add(Opcode::kAnd, {below, Along(b, preds, b.Add(Opcode::kNot, {is_zero}), {0})});
  column =
      b.Select(divides, b.Add(Opcode::kDivide, {column, Along(b, vector, pivot, {0})}), column);
  Instruction* product =
      b.Add(Opcode::kMultiply, {Along(b, matrix, column, {0, 1}), Along(b, matrix, row, {0, 2})});
  Instruction* columns = Places(b, {batch, m, n}, 2);
  here = b.Spread(ArrayShape(ElementType::kS32, {batch, m, n}), i);
  Instruction* rest = b.Add(
      Opcode::kAnd, {b.Compare(Direction::kGt, columns, here), Along(b, all_preds, below, {0, 1})});
  x = b.Select(b.Compare(Direction::kEq, columns, here), Along(b, matrix, column, {0, 1}),
               b.Select(rest, b.Add(Opcode::kSubtract, {x, product}), x));

  pivots =
      b.Add(Opcode::kDynamicUpdateSlice, {pivots, pivot_index, b.Scalar(ElementType::kS32, 0), i});
  const Shape infos = ArrayShape(ElementType::kS32, {batch});
  Instruction* first =
      b.Add(Opcode::kAnd, {is_zero, b.Compare(Direction::kEq, info, b.Number(infos, 0))});
  Instruction* number = b.Add(Opcode::kAdd, {i, b.Scalar(ElementType::kS32, 1)});
  info = b.Select(first, b.Spread(infos, number), info);
  return {x, pivots, order, info};
}

// The factors before the first step.
LuFactors Initial(Builder& b, Instruction* x) {
  const int64_t batch = x->shape().dim(0), m = x->shape().dim(1), n = x->shape().dim(2);
  constexpr ElementType kCount = ElementType::kS32;
  return {.factors = x,
          .pivots = b.Number(ArrayShape(kCount, {batch, std::min(m, n)}), 0),
          .order = Places(b, {batch, m}, 1),
          .info = b.Number(ArrayShape(kCount, {batch}), 0)};
}

// The left half of the columns first (Toledo, Locality of reference in LU decomposition with
// partial pivoting, 1997). With its rows in that half's order, the right half is
//   | top    |   | L1 U2           |
//   | bottom | = | L21 U2 + L2 U22 |
LuFactors Factor(Builder& b, Instruction* x, int64_t of_a_loop) {
  const int64_t m = x->shape().dim(1), n = x->shape().dim(2), k = std::min(m, n);
  if (n <= of_a_loop) {
    const LuFactors initial = Initial(b, x);
    const Values end =
        Loop(b, {initial.factors, initial.pivots, initial.order, initial.info}, k, Turn);
    return {end[0], end[1], end[2], end[3]};
  }
  const int64_t half = FirstHalf(k, of_a_loop);
  const LuFactors left = Factor(b, Block(b, x, 0, m, 0, half), of_a_loop);
  if (!b.status().ok()) return {};
  Instruction* right = InOrder(b, Block(b, x, 0, m, half, n), left.order);
  Instruction* corner = Block(b, left.factors, 0, half, 0, half);
  Instruction* top =
      b.Add(Opcode::kTriangularSolve, {corner, Block(b, right, 0, half, 0, n - half)},
            {{Attr::kLeftSide, true},
             {Attr::kLower, true},
             {Attr::kUnitDiagonal, true},
             {Attr::kTransposeA, std::string("NO_TRANSPOSE")}});
  Instruction* upper = b.Concatenate({corner, top}, 2);
  if (m == half) return {upper, left.pivots, left.order, left.info};

  Instruction* lower = Block(b, left.factors, half, m, 0, half);
  Instruction* bottom =
      b.Add(Opcode::kSubtract, {Block(b, right, half, m, 0, n - half), Product(b, lower, top)});
  if (!b.status().ok()) return {};
  const LuFactors rest = Factor(b, bottom, of_a_loop);
  if (!b.status().ok()) return {};
  auto behind = [&](Instruction* count) {
    return b.Add(Opcode::kAdd, {count, b.Number(count->shape(), static_cast<double>(half))});
  };
  lower = b.Concatenate({InOrder(b, lower, rest.order), rest.factors}, 2);
  Instruction* order = InOrder(b, Part(b, left.order, half, m), rest.order);
  Instruction* zero = b.Number(left.info->shape(), 0);
  Instruction* info = b.Select(b.Compare(Direction::kEq, rest.info, zero), zero, behind(rest.info));
  return {.factors = b.Concatenate({upper, lower}, 1),
          .pivots = b.Concatenate({left.pivots, behind(rest.pivots)}, 1),
          .order = b.Concatenate({Part(b, left.order, 0, half), order}, 1),
          .info = b.Select(b.Compare(Direction::kEq, left.info, zero), info, left.info)};
}

}  // namespace

LuFactors LuDecomposition(Builder& b, Instruction* x) {
  const int64_t k = std::min(x->shape().dim(1), x->shape().dim(2));
  if (x->shape().num_elements() == 0) return Initial(b, x);
  return Factor(b, x, ColumnsOfALoop(k));
}

}  // namespace kiln::stablehlo
