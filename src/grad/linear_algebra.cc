// Decompositions, triangular systems and Fourier transforms. x' is the tangent of x, x^T the
// transposed matrix, and x^H that of conjugated elements.
#include <algorithm>
#include <numeric>

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

Instruction* Conjugate(Builder& b, Instruction* x) {
  if (!IsComplex(x->shape().type())) return x;
  return b.Binary(Opcode::kComplex, b.Unary(Opcode::kReal, x), b.Negate(b.Unary(Opcode::kImag, x)));
}

// Of the matrices in the last two dimensions.
Instruction* Transposed(Builder& b, Instruction* x) {
  Ints order(static_cast<size_t>(x->shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return b.Transpose(x, std::move(order));
}

Instruction* Product(Builder& b, Instruction* x, Instruction* y) {
  const int64_t rank = x->shape().rank();
  Ints batch(static_cast<size_t>(rank - 2));
  std::iota(batch.begin(), batch.end(), 0);
  return b.Add(Opcode::kDot, {x, y},
               {{Attr::kLhsBatchDims, batch},
                {Attr::kRhsBatchDims, batch},
                {Attr::kLhsContractingDims, Ints{rank - 1}},
                {Attr::kRhsContractingDims, Ints{rank - 2}}});
}

// How the row of each element of a matrix compares with its column.
Instruction* RowIs(Builder& b, Direction direction, Instruction* x) {
  const int64_t rank = x->shape().rank();
  return b.Compare(direction, b.IotaLike(x, ElementType::kS32, rank - 2),
                   b.IotaLike(x, ElementType::kS32, rank - 1));
}

// The triangle of a matrix, with its diagonal.
Instruction* InTriangle(Builder& b, bool lower, Instruction* x) {
  return RowIs(b, lower ? Direction::kGe : Direction::kLe, x);
}

enum class Side : uint8_t { kLeft, kRight };

// op(a)^-1 x, or x op(a)^-1
Instruction* Solve(Builder& b, Side side, bool lower, const char* op, Instruction* a,
                   Instruction* x) {
  return b.Add(Opcode::kTriangularSolve, {a, x},
               {{Attr::kLeftSide, side == Side::kLeft},
                {Attr::kLower, lower},
                {Attr::kUnitDiagonal, false},
                {Attr::kTransposeA, std::string(op)}});
}

// The Hermitian matrix with this triangle, of whose diagonal the real part counts.
Instruction* Hermitian(Builder& b, bool lower, Instruction* x) {
  Instruction* other = Conjugate(b, Transposed(b, x));
  if (IsComplex(x->shape().type())) {
    Instruction* diagonal = b.Convert(b.Unary(Opcode::kReal, x), x->shape().type());
    other = b.Select(RowIs(b, Direction::kEq, x), diagonal, other);
  }
  const bool is_real = IsFloat(x->shape().type());
  Instruction* strict = RowIs(b, lower ? Direction::kGt : Direction::kLt, x);
  return b.Select(is_real ? InTriangle(b, lower, x) : strict, x, other);
}

// The triangle with half of the diagonal.
Instruction* HalfTriangle(Builder& b, bool lower, Instruction* x) {
  Instruction* halves = b.Select(RowIs(b, Direction::kEq, x), b.Number(x, 0.5), b.Number(x, 1));
  return b.Masked(InTriangle(b, lower, x), b.Times(x, halves));
}

}  // namespace

// a = L L^H: L^-1 a' L^-H = L^-1 L' + (L^-1 L')^H, so that L' = L h(L^-1 a' L^-H), where h is the
// lower triangle with half of the diagonal. a = U^H U: U' = h(U^-H a' U^-1) U
template <>
Derivative Tangent<Opcode::kCholesky>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  const bool lower = op->attributes().Bool(Attr::kLower);
  Instruction* inner = Hermitian(b, lower, forward.TangentOf(op->operand(0)).array);
  inner = Solve(b, Side::kLeft, lower, lower ? "NO_TRANSPOSE" : "ADJOINT", op, inner);
  inner = Solve(b, Side::kRight, lower, lower ? "ADJOINT" : "NO_TRANSPOSE", op, inner);
  inner = HalfTriangle(b, lower, inner);
  return {lower ? Product(b, op, inner) : Product(b, inner, op)};
}

// op(a) x = b: op(a) x' = b' - op(a') x, where a' is 0 outside of the triangle. x op(a) = b alike
template <>
Derivative Tangent<Opcode::kTriangularSolve>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction* right = forward.TangentOf(op->operand(1)).array;
  if (Instruction* a = forward.TangentOf(op->operand(0)).array) {
    const Attributes& attributes = op->attributes();
    const bool lower = attributes.Bool(Attr::kLower);
    Instruction* triangle = InTriangle(b, lower, a);
    if (attributes.Bool(Attr::kUnitDiagonal)) {
      triangle = RowIs(b, lower ? Direction::kGt : Direction::kLt, a);
    }
    a = b.Masked(triangle, a);
    if (attributes.Text(Attr::kTransposeA) != "NO_TRANSPOSE") a = Transposed(b, a);
    if (attributes.Text(Attr::kTransposeA) == "ADJOINT") a = Conjugate(b, a);
    Instruction* moved = attributes.Bool(Attr::kLeftSide) ? Product(b, a, op) : Product(b, op, a);
    right = right ? b.Minus(right, moved) : b.Negate(moved);
  }
  return {b.Add(Opcode::kTriangularSolve, {op->operand(0), right}, op->attributes())};
}

// x = op(a)^-1 b: op(a)^-T t to b, and x = b op(a)^-1 alike
template <>
bool Transpose<Opcode::kTriangularSolve>(Reverse& reverse, Instruction* op,
                                         const Derivative& cotangent) {
  if (reverse.IsActive(op->operand(0))) return false;
  Builder& b = reverse.builder();
  Attributes attributes = op->attributes();
  const std::string& which = attributes.Text(Attr::kTransposeA);
  Instruction* a = which == "ADJOINT" ? Conjugate(b, op->operand(0)) : op->operand(0);
  const bool transposes = which == "NO_TRANSPOSE";
  attributes.Set(Attr::kTransposeA, std::string(transposes ? "TRANSPOSE" : "NO_TRANSPOSE"));
  reverse.Add(op->operand(1),
              b.Add(Opcode::kTriangularSolve, {a, cotangent.array}, std::move(attributes)));
  return true;
}

namespace {

// x transformed along the same dimensions.
Instruction* Transformed(Builder& b, const Instruction* fft, std::string type, Instruction* x) {
  return b.Add(Opcode::kFft, {x},
               {{Attr::kFftType, std::move(type)},
                {Attr::kFftLength, fft->attributes().IntsOf(Attr::kFftLength)}});
}

// rfft(x) is the first part of fft(x): Re(fft(t, 0, ...))
Instruction* RealTransposed(Builder& b, const Instruction* op, Instruction* t) {
  const Shape& shape = op->operand(0)->shape();
  const int64_t last = shape.rank() - 1;
  std::vector<PaddingDimension> padding(static_cast<size_t>(shape.rank()));
  padding.back().high = shape.dim(last) - t->shape().dim(last);
  Instruction* whole = b.Add(Opcode::kPad, {t, b.Scalar(t->shape().type(), 0)},
                             {{Attr::kPadding, std::move(padding)}});
  return b.Unary(Opcode::kReal, Transformed(b, op, "FFT", whole));
}

// irfft(x) = sum over k of m_k Re(x_k e^(i ...)) / n, where m is 1 for the first point, and for the
// middle one, and 2 for those that stand for their conjugates, too: conj(m rfft(t)) / n
Instruction* InverseRealTransposed(Builder& b, const Instruction* op, Instruction* t) {
  const Ints& lengths = op->attributes().IntsOf(Attr::kFftLength);
  const Shape& shape = op->operand(0)->shape();
  double count = 1;
  for (int64_t length : lengths) count *= static_cast<double>(length);
  const int64_t points = lengths.back() / 2 + 1;
  std::vector<double> factors(static_cast<size_t>(points), 2 / count);
  factors[0] = 1 / count;
  if (lengths.back() % 2 == 0) factors.back() = 1 / count;
  Instruction* factor =
      b.Convert(b.Constant(Literal::Array<double>(Shape(ElementType::kF64, {points}), factors)),
                shape.type());
  Instruction* transformed = Transformed(b, op, "RFFT", t);
  return Conjugate(b,
                   b.Times(transformed, b.BroadcastLike(transformed, factor, {shape.rank() - 1})));
}

}  // namespace

// The matrix of the discrete Fourier transform is symmetric, and its inverse is.
template <>
bool Transpose<Opcode::kFft>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  Instruction *x = op->operand(0), *t = cotangent.array;
  const std::string& type = op->attributes().Text(Attr::kFftType);
  const Ints& lengths = op->attributes().IntsOf(Attr::kFftLength);
  if (std::ranges::count(lengths, 0) > 0) return true;
  if (!x->shape().dimensions().back().is_constant()) {
    b.Fail(Unimplemented("'", op->name(), "': fft has no derivative along a dimension of ",
                         x->shape().dimensions().back()));
    return true;
  }
  if (type == "RFFT") {
    reverse.Add(x, RealTransposed(b, op, t));
  } else if (type == "IRFFT") {
    reverse.Add(x, InverseRealTransposed(b, op, t));
  } else {
    reverse.Add(x, Transformed(b, op, type, t));
  }
  return true;
}

}  // namespace kiln::grad
