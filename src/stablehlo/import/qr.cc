#include "stablehlo/import/factors.h"
#include "stablehlo/import/matrices.h"

#include <algorithm>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// The conjugate; the identity for real numbers.
Instruction* Conjugate(Builder& b, Instruction* x) {
  if (!x || !IsComplex(x->shape().type())) return x;
  Instruction* imag = b.Add(Opcode::kNegate, {b.Add(Opcode::kImag, {x})});
  return b.Add(Opcode::kComplex, {b.Add(Opcode::kReal, {x}), imag});
}

// The conjugate transpose of each matrix.
Instruction* Adjoint(Builder& b, Instruction* x) { return b.Transpose(Conjugate(b, x), {0, 2, 1}); }

// Step i, where a = s y is column i from the diagonal down, and s its largest part, so that squares
// stay in range:
//   beta = -sign(re y[i]) |y|,  tau = (beta - y[i]) / beta,  v = y / (y[i] - beta)
// I - conj(tau) v v' makes the column s beta. If all elements below the diagonal are 0 and y[i] is
// real, the column is unchanged, and tau is 0.
Values Turn(Builder& b, Instruction* i, const Values& state) {
  Instruction *x = state[0], *taus = state[1];
  const Shape matrix = x->shape();
  const ElementType type = matrix.type(), real = PartOf(type);
  const int64_t batch = matrix.dim(0), m = matrix.dim(1), n = matrix.dim(2);
  const Shape vector = ArrayShape(type, {batch, m}), sizes = ArrayShape(real, {batch, m});
  const Shape scalar = ArrayShape(type, {batch}), size = ArrayShape(real, {batch});
  const Shape counts = ArrayShape(ElementType::kS32, {batch, m});
  const Shape preds = ArrayShape(ElementType::kPred, {batch, m});
  const Shape all_preds = ArrayShape(ElementType::kPred, {batch, m, n});
  auto op = [&](Opcode opcode, Instruction* l, Instruction* r) { return b.Add(opcode, {l, r}); };
  auto spread = [&](Instruction* each) { return Along(b, vector, each, {0}); };

  Instruction* column = ColumnAt(b, x, i);
  Instruction *rows = Places(b, {batch, m}, 1), *here = b.Spread(counts, i);
  Instruction* from = b.Compare(Direction::kGe, rows, here);
  Instruction* below = b.Compare(Direction::kGt, rows, here);
  Instruction* none = b.Number(sizes, 0);
  Instruction* scale =
      b.Reduce(Opcode::kMaximum, b.Select(from, Magnitude(b, column), none), 0, {1});
  Instruction* is_zero = b.Compare(Direction::kEq, scale, b.Number(size, 0));
  scale = b.Select(is_zero, b.Number(size, 1), scale);
  Instruction* y = op(Opcode::kDivide, column, spread(b.Convert(scale, type)));
  Instruction* squares = nullptr;
  if (IsComplex(type)) {
    Instruction *re = b.Add(Opcode::kReal, {y}), *im = b.Add(Opcode::kImag, {y});
    squares = op(Opcode::kAdd, op(Opcode::kMultiply, re, re), op(Opcode::kMultiply, im, im));
  } else {
    squares = op(Opcode::kMultiply, y, y);
  }
  auto sum = [&](Instruction* where) {
    return b.Reduce(Opcode::kAdd, b.Select(where, squares, none), 0, {1});
  };
  Instruction *tail = sum(below), *norm = b.Add(Opcode::kSqrt, {sum(from)});
  Instruction* head = RowAt(b, y, i);
  Instruction* head_real = IsComplex(type) ? b.Add(Opcode::kReal, {head}) : head;
  Instruction* beta = b.Select(b.Compare(Direction::kLt, head_real, b.Number(size, 0)), norm,
                               b.Add(Opcode::kNegate, {norm}));
  Instruction* stays = b.Compare(Direction::kEq, tail, b.Number(size, 0));
  if (IsComplex(type)) {
    Instruction* imag = b.Add(Opcode::kImag, {head});
    stays = op(Opcode::kAnd, stays, b.Compare(Direction::kEq, imag, b.Number(size, 0)));
  }
  Instruction* wide_beta = b.Convert(beta, type);
  Instruction* zero = b.Number(scalar, 0);
  Instruction* tau =
      b.Select(stays, zero, op(Opcode::kDivide, op(Opcode::kSubtract, wide_beta, head), wide_beta));
  Instruction* all_stay = Along(b, preds, stays, {0});
  Instruction* moves = op(Opcode::kAnd, below, b.Add(Opcode::kNot, {all_stay}));
  Instruction* v =
      b.Select(moves, op(Opcode::kDivide, y, spread(op(Opcode::kSubtract, head, wide_beta))),
               b.Number(vector, 0));
  Instruction* diagonal = b.Compare(Direction::kEq, rows, here);

  // x - conj(tau) v (v' x).
  Instruction* unit = b.Select(diagonal, b.Number(vector, 1), v);
  Instruction* products = b.Add(Opcode::kDot, {Conjugate(b, unit), x},
                                {{Attr::kLhsBatchDims, Ints{0}},
                                 {Attr::kRhsBatchDims, Ints{0}},
                                 {Attr::kLhsContractingDims, Ints{1}},
                                 {Attr::kRhsContractingDims, Ints{1}}});
  Instruction* scaled = op(Opcode::kMultiply, unit, spread(Conjugate(b, tau)));
  Instruction* change =
      op(Opcode::kMultiply, Along(b, matrix, scaled, {0, 1}), Along(b, matrix, products, {0, 2}));
  Instruction* columns = Places(b, {batch, m, n}, 2);
  Instruction* there = b.Spread(ArrayShape(ElementType::kS32, {batch, m, n}), i);
  Instruction* changes = op(Opcode::kAnd, from, b.Add(Opcode::kNot, {all_stay}));
  Instruction* rest = op(Opcode::kAnd, b.Compare(Direction::kGt, columns, there),
                         Along(b, all_preds, changes, {0, 1}));
  // The column is R's above and on the diagonal, and v's below.
  Instruction* on_diagonal = op(Opcode::kMultiply, wide_beta, b.Convert(scale, type));
  Instruction* made = b.Select(diagonal, spread(on_diagonal), b.Select(below, v, column));
  made = b.Select(all_stay, column, made);
  x = b.Select(b.Compare(Direction::kEq, columns, there), Along(b, matrix, made, {0, 1}),
               b.Select(rest, op(Opcode::kSubtract, x, change), x));
  taus = b.Add(Opcode::kDynamicUpdateSlice,
               {taus, b.Reshape(tau, Ints{batch, 1}), b.Scalar(ElementType::kS32, 0), i});
  return {x, taus};
}

// Reflections as one matrix (Puglisi, Modification of the Householder method based on the compact
// WY representation, 1992):
//   Q = I - V S^-1 V',  S = the part of V' V above the diagonal, and 1 / tau on it.
// A reflection whose tau is 0 is the identity: its v is 0 here, and 1 stands for 1 / tau.
struct Reflections {
  Instruction* v = nullptr;  // [batch, m, k]
  Instruction* s = nullptr;  // [batch, k, k]
};
Reflections ReflectionsOf(Builder& b, Instruction* factors, Instruction* taus) {
  if (!factors || !taus) return {};
  const ElementType type = factors->shape().type();
  const int64_t batch = factors->shape().dim(0), m = factors->shape().dim(1),
                k = taus->shape().dim(1);
  Instruction* is_none = b.Compare(Direction::kEq, taus, b.Number(ArrayShape(type, {batch, k}), 0));
  Instruction* inverse =
      b.Add(Opcode::kDivide, {b.Number(ArrayShape(type, {batch, k}), 1),
                              b.Select(is_none, b.Number(ArrayShape(type, {batch, k}), 1), taus)});
  const Shape vectors = ArrayShape(type, {batch, m, k}), square = ArrayShape(type, {batch, k, k});
  Instruction *row = Places(b, {batch, m, k}, 1), *column = Places(b, {batch, m, k}, 2);
  Instruction* zero = b.Number(vectors, 0);
  Instruction* v = b.Select(
      b.Compare(Direction::kEq, row, column), b.Number(vectors, 1),
      b.Select(b.Compare(Direction::kGt, row, column), Block(b, factors, 0, m, 0, k), zero));
  v = b.Select(Along(b, ArrayShape(ElementType::kPred, {batch, m, k}), is_none, {0, 2}), zero, v);
  row = Places(b, {batch, k, k}, 1);
  column = Places(b, {batch, k, k}, 2);
  Instruction* s = b.Select(b.Compare(Direction::kLt, row, column), Product(b, Adjoint(b, v), v),
                            b.Number(square, 0));
  s = b.Select(b.Compare(Direction::kEq, row, column), Along(b, square, inverse, {0, 2}), s);
  return {v, s};
}

// x - V S^-1 y, or with the adjoint of S.
Instruction* Reflected(Builder& b, Instruction* x, const Reflections& q, Instruction* y,
                       bool adjoint) {
  Instruction* solved =
      b.Add(Opcode::kTriangularSolve, {q.s, y},
            {{Attr::kLeftSide, true},
             {Attr::kLower, false},
             {Attr::kUnitDiagonal, false},
             {Attr::kTransposeA, std::string(adjoint ? "ADJOINT" : "NO_TRANSPOSE")}});
  return b.Add(Opcode::kSubtract, {x, Product(b, q.v, solved)});
}

// The left half of the columns first; the right half is that of Q' A then (Elmroth and Gustavson,
// Applying recursion to serial and parallel QR factorization, 2000).
QrFactors Factor(Builder& b, Instruction* x, int64_t of_a_loop) {
  const int64_t batch = x->shape().dim(0), m = x->shape().dim(1), n = x->shape().dim(2);
  const int64_t k = std::min(m, n);
  if (n <= of_a_loop) {
    const Values end =
        Loop(b, {x, b.Number(ArrayShape(x->shape().type(), {batch, k}), 0)}, k, Turn);
    return {end[0], end[1]};
  }
  const int64_t half = FirstHalf(k, of_a_loop);
  const QrFactors left = Factor(b, Block(b, x, 0, m, 0, half), of_a_loop);
  const Reflections q = ReflectionsOf(b, left.factors, left.taus);
  Instruction* right = Block(b, x, 0, m, half, n);
  right = Reflected(b, right, q, Product(b, Adjoint(b, q.v), right), /*adjoint=*/true);
  if (m == half) return {b.Concatenate({left.factors, right}, 2), left.taus};
  Instruction* bottom = Block(b, right, half, m, 0, n - half);
  if (!b.status().ok()) return {};
  const QrFactors rest = Factor(b, bottom, of_a_loop);
  right = b.Concatenate({Block(b, right, 0, half, 0, n - half), rest.factors}, 1);
  return {b.Concatenate({left.factors, right}, 2), b.Concatenate({left.taus, rest.taus}, 1)};
}

}  // namespace

QrFactors QrDecomposition(Builder& b, Instruction* x) {
  const Shape& shape = x->shape();
  const int64_t k = std::min(shape.dim(1), shape.dim(2));
  if (shape.num_elements() == 0) {
    return {x, b.Number(ArrayShape(shape.type(), {shape.dim(0), k}), 0)};
  }
  return Factor(b, x, ColumnsOfALoop(k));
}

Instruction* ProductOfReflections(Builder& b, Instruction* x, Instruction* taus) {
  const Shape shape = x->shape();
  const int64_t batch = shape.dim(0), m = shape.dim(1), n = shape.dim(2);
  const int64_t k = taus->shape().dim(1);
  Instruction* diagonal =
      b.Compare(Direction::kEq, Places(b, {batch, m, n}, 1), Places(b, {batch, m, n}, 2));
  Instruction* identity = b.Select(diagonal, b.Number(shape, 1), b.Number(shape, 0));
  if (shape.num_elements() == 0 || k == 0) return identity;
  const Reflections q = ReflectionsOf(b, x, taus);
  return Reflected(b, identity, q, Adjoint(b, Block(b, q.v, 0, n, 0, k)), /*adjoint=*/false);
}

}  // namespace kiln::stablehlo
