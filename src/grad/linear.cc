#include "grad/linear.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ir/analysis/trip_count.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

constexpr std::string_view kLu = "lapack.getrf", kQr = "lapack.geqrf", kQ = "lapack.orgqr";

bool IsCallOf(const Instruction& x, std::string_view target) {
  return x.opcode() == Opcode::kCustomCall &&
         x.attributes().Text(Attr::kCustomCallTarget) == target;
}

// Matrices of the last two dimensions.
struct Matrices {
  Builder& b;
  Shape shape;

  int64_t rank() const { return shape.rank(); }
  int64_t rows() const { return shape.dim(shape.rank() - 2); }
  int64_t columns() const { return shape.dim(shape.rank() - 1); }
  Matrices Square(int64_t size) const {
    Matrices square = *this;
    square.shape.set_dimension(shape.rank() - 2, size);
    square.shape.set_dimension(shape.rank() - 1, size);
    return square;
  }
  // The number of each element's row or column.
  Instruction* Place(int64_t from_last) const {
    Shape places = shape;
    places.set_type(ElementType::kS32);
    return b.Iota(places, shape.rank() - from_last);
  }
  // x where row direction column, else 0.
  Instruction* Triangle(Direction direction, Instruction* x) const {
    return b.Masked(b.Compare(direction, Place(2), Place(1)), x);
  }
  // The upper left part of x, with zeros where x has none.
  Instruction* Corner(Instruction* x) const {
    std::vector<PaddingDimension> padding(static_cast<size_t>(shape.rank()));
    for (int64_t d = shape.rank() - 2; d < shape.rank(); ++d) {
      padding[static_cast<size_t>(d)].high = shape.dim(d) - x->shape().dim(d);
    }
    return b.Add(Opcode::kPad, {x, b.Scalar(shape.type(), 0)},
                 {{Attr::kPadding, std::move(padding)}});
  }
  Instruction* Transpose(Instruction* x) const {
    Ints permutation;
    for (int64_t d = 0; d < rank(); ++d) permutation.push_back(d);
    std::swap(permutation[permutation.size() - 2], permutation.back());
    return b.Transpose(x, std::move(permutation));
  }
  // The first rows and columns of x.
  Instruction* Part(Instruction* x) const {
    std::vector<SliceDimension> slices;
    for (int64_t size : shape.dims()) slices.push_back({0, size, 1});
    return b.Slice(x, std::move(slices));
  }
  Instruction* Product(Instruction* x, Instruction* y) const {
    Ints batch;
    for (int64_t d = 0; d + 2 < shape.rank(); ++d) batch.push_back(d);
    return b.Add(Opcode::kDot, {x, y},
                 {{Attr::kLhsBatchDims, batch},
                  {Attr::kRhsBatchDims, batch},
                  {Attr::kLhsContractingDims, Ints{shape.rank() - 1}},
                  {Attr::kRhsContractingDims, Ints{shape.rank() - 2}}});
  }
  Instruction* Solve(Instruction* triangle, Instruction* x, bool left, bool lower,
                     bool unit) const {
    return b.Add(Opcode::kTriangularSolve, {triangle, x},
                 {{Attr::kLeftSide, left},
                  {Attr::kLower, lower},
                  {Attr::kUnitDiagonal, unit},
                  {Attr::kTransposeA, std::string("NO_TRANSPOSE")}});
  }
};

// P A = L U, with the factors in one matrix: for F = L^-1 P A' U^-1,
//   L' = L tril(F, -1), U' = triu(F) U
// where L and U are made square by columns and rows of the identity.
Derivative LuTangent(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* t = forward.TangentOf(op->operand(0)).array;
  if (!t) return {};
  const Matrices all{b, t->shape()};
  const int64_t m = all.rows(), n = all.columns(), k = std::min(m, n), rank = all.shape.rank();
  const Matrices left = all.Square(m), right = all.Square(n);
  // The rows in their order, by a matrix of ones and zeros.
  Ints outer;
  for (int64_t d = 0; d + 1 < rank; ++d) outer.push_back(d);
  Instruction* order =
      b.Broadcast(b.Convert(b.Element(op, 2), ElementType::kS32), left.shape.dimensions(), outer);
  Instruction* is_from = b.Compare(Direction::kEq, order, left.Place(1));
  Instruction* x = all.Product(b.Convert(is_from, all.shape.type()), t);

  Instruction* factors = b.Element(op, 0);
  const auto with_ones = [&](const Matrices& of, Instruction* triangle, int64_t from) {
    Instruction* ones = b.And(
        b.Compare(Direction::kEq, of.Place(2), of.Place(1)),
        b.Compare(Direction::kGe, of.Place(2), b.Number(of.Place(2), static_cast<double>(from))));
    return b.Select(ones, b.Number(of.shape, 1), triangle);
  };
  // Columns of L beyond k, and rows of U beyond k, are the identity's.
  Instruction* below = all.Triangle(Direction::kGt, factors);
  Instruction* above = all.Triangle(Direction::kLe, factors);
  Instruction* l = with_ones(left, left.Triangle(Direction::kGt, left.Corner(below)), 0);
  Instruction* u = with_ones(right, right.Corner(above), k);
  Instruction* f = all.Solve(u, all.Solve(l, x, true, true, true), false, false, false);
  Instruction* sum = b.Plus(all.Product(l, all.Triangle(Direction::kGt, f)),
                            all.Product(all.Triangle(Direction::kLe, f), u));
  return {.elements = {{sum}}};
}

// A = Q R, of at least as many rows as columns.
struct Qr {
  // By A' and the call of geqrf; Q is that of the graph, or made here. None, with a failure, for
  // more columns than rows.
  static std::optional<Qr> Make(Forward& forward, Instruction* call, Instruction* q);

  Matrices all, square;
  Instruction *q, *r;
  // Of A' R^-1, of Q^T A' R^-1, and of the antisymmetric matrix with the lower part of this.
  Instruction *quotient, *inner, *turn;

  // Q' = Q (W - Q^T A' R^-1) + A' R^-1 and R' = (Q^T A' R^-1 - W) R for the antisymmetric W.
  Instruction* QTangent() const {
    Builder& b = all.b;
    return b.Plus(all.Product(q, b.Minus(turn, inner)), quotient);
  }
  Instruction* RTangent() const { return square.Product(square.b.Minus(inner, turn), r); }
};

// The product of the reflections of a call of geqrf, or null.
Instruction* FindQ(const Instruction* call) {
  for (const Instruction* factors : call->users()) {
    if (!ir::IsElementOf(factors, call) || factors->attributes().Int(Attr::kIndex) != 0) continue;
    for (Instruction* q : factors->users()) {
      if (IsCallOf(*q, kQ) && q->operand(0) == factors) return q;
    }
  }
  return nullptr;
}

std::optional<Qr> Qr::Make(Forward& forward, Instruction* call, Instruction* q) {
  Builder& b = forward.builder();
  Instruction* t = forward.TangentOf(call->operand(0)).array;
  const Matrices all{b, t->shape()};
  if (all.rows() < all.columns()) {
    b.Fail(Unimplemented("'", call->name(),
                         "': the QR decomposition of matrices with more columns than rows has no "
                         "derivative"));
    return std::nullopt;
  }
  Instruction* factors = b.Element(call, 0);
  if (!q) {
    q = b.Add(Opcode::kCustomCall, {factors, b.Element(call, 1)},
              {{Attr::kCustomCallTarget, QuotedText{std::string(kQ)}}}, t->shape());
  }
  const Matrices square = all.Square(all.columns());
  Instruction* r = square.Triangle(Direction::kLe, square.Part(factors));
  Instruction* quotient = all.Solve(r, t, false, false, false);
  Instruction* inner = all.Product(all.Transpose(q), quotient);
  Instruction* lower = square.Triangle(Direction::kGt, inner);
  return Qr{all, square, q, r, quotient, inner, b.Minus(lower, square.Transpose(lower))};
}

// R' in the upper triangle. What is below it, and the second result, tells Q by reflections, which
// only the product of them needs: they are not a number where anything else reads their
// derivatives.
Derivative QrTangent(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* t = forward.TangentOf(op->operand(0)).array;
  if (!t) return {};
  const std::optional<Qr> qr = Qr::Make(forward, op, FindQ(op));
  if (!qr) return {};
  const Matrices& all = qr->all;
  const auto unknown = [&](Instruction* x) {
    return b.Scaled(x, b.Number(x, std::numeric_limits<double>::quiet_NaN()));
  };
  Instruction* r = all.Corner(qr->square.Triangle(Direction::kLe, qr->RTangent()));
  Instruction* factors = b.Plus(r, unknown(all.Triangle(Direction::kGt, t)));
  Matrices first = all;
  first.shape.set_dimension(all.rank() - 2, 1);
  Instruction* taus = b.Reshape(first.Part(t), op->shape().elements()[1].dimensions());
  return {.elements = {{factors}, {unknown(taus)}}};
}

// The call of geqrf whose reflections are multiplied to as many columns as it has.
Instruction* CallOfReflections(const Instruction& product) {
  const Instruction *factors = product.operand(0), *taus = product.operand(1);
  if (factors->opcode() != Opcode::kGetTupleElement) return nullptr;
  Instruction* call = factors->operand(0);
  const bool is_whole = IsCallOf(*call, kQr) && ir::IsElementOf(taus, call) &&
                        factors->attributes().Int(Attr::kIndex) == 0 &&
                        taus->attributes().Int(Attr::kIndex) == 1;
  return is_whole ? call : nullptr;
}

Derivative QTangent(Forward& forward, Instruction* op) {
  Instruction* call = CallOfReflections(*op);
  if (!call || !forward.TangentOf(call->operand(0)).array) {
    forward.builder().Fail(Unimplemented("'", op->name(), "': ", kQ,
                                         " has a derivative for the results of ", kQr, " alone"));
    return {};
  }
  const std::optional<Qr> qr = Qr::Make(forward, call, op);
  return qr ? Derivative{qr->QTangent()} : Derivative();
}

Instruction* FirstOperand(const Instruction& call) { return call.operand(0); }
Instruction* OperandOfReflections(const Instruction& product) {
  const Instruction* call = CallOfReflections(product);
  return call ? call->operand(0) : nullptr;
}

constexpr LinearFunction kFunctions[] = {{kLu, LuTangent, FirstOperand},
                                         {kQr, QrTangent, FirstOperand},
                                         {kQ, QTangent, OperandOfReflections}};

}  // namespace

const LinearFunction* FindLinearFunction(const Instruction& call) {
  for (const LinearFunction& function : kFunctions) {
    if (IsCallOf(call, function.target)) return &function;
  }
  return nullptr;
}

}  // namespace kiln::grad
