// Partial derivatives of elementwise functions. Each rule is headed by its algebra: x and y are the
// operands, f is the result, t the tangent or cotangent that is multiplied.
#include <cmath>
#include <numbers>
#include <optional>

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

#define KILN_PARTIAL(Name)                                                                        \
  template <>                                                                                     \
  Instruction* Partial<Opcode::k##Name>(Builder & b, Instruction * f, [[maybe_unused]] int64_t k, \
                                        Instruction * t)

namespace {

Instruction* X(const Instruction* f) { return f->operand(0); }
Instruction* Y(const Instruction* f) { return f->operand(1); }

// 1 - x^2 and 1 + x^2
Instruction* OneMinusSquare(Builder& b, Instruction* x) {
  return b.Times(b.Minus(b.Number(x, 1), x), b.Plus(b.Number(x, 1), x));
}
Instruction* OnePlusSquare(Builder& b, Instruction* x) {
  return b.Plus(b.Number(x, 1), b.Times(x, x));
}

// The number in all places, if it is a constant.
std::optional<double> ConstantOf(const Instruction* x) {
  while (x->opcode() == Opcode::kBroadcast) x = x->operand(0);
  if (!x->IsConstant() || !x->shape().is_scalar()) return std::nullopt;
  return x->literal().AsDouble(0);
}
bool IsNonzeroConstant(const Instruction* x) { return ConstantOf(x).value_or(0) != 0; }
bool IsFiniteConstant(const Instruction* x) {
  return std::isfinite(ConstantOf(x).value_or(INFINITY));
}

// Whether x is never negative because it is made of squares: then a root of it is a norm. Looks at
// so many ops at most.
bool IsSumOfSquares(const Instruction* x, int& ops) {
  if (--ops < 0) return false;
  const auto operand = [&](int64_t k) { return x->operand(k); };
  const auto is_sum = [&](int64_t k) { return IsSumOfSquares(operand(k), ops); };
  switch (x->opcode()) {
    case Opcode::kMultiply:
      return operand(0) == operand(1) || (ConstantOf(operand(0)).value_or(-1) >= 0 && is_sum(1)) ||
             (ConstantOf(operand(1)).value_or(-1) >= 0 && is_sum(0));
    case Opcode::kDivide:
      return ConstantOf(operand(1)).value_or(-1) > 0 && is_sum(0);
    case Opcode::kPower:
      return operand(1)->IsConstantOf(2);
    case Opcode::kAdd:
      return is_sum(0) && (operand(0) == operand(1) || is_sum(1));
    case Opcode::kReduce:
      return x->operand_count() == 2 && operand(1)->IsConstantOf(0) &&
             x->called(0)->root()->opcode() == Opcode::kAdd && is_sum(0);
    case Opcode::kDot: {
      // A vector with itself.
      const Attributes& dims = x->attributes();
      return operand(0) == operand(1) &&
             dims.IntsOf(Attr::kLhsContractingDims) == dims.IntsOf(Attr::kRhsContractingDims) &&
             dims.IntsOf(Attr::kLhsBatchDims) == dims.IntsOf(Attr::kRhsBatchDims) &&
             x->shape().rank() == std::ssize(dims.IntsOf(Attr::kLhsBatchDims));
    }
    case Opcode::kBroadcast:
    case Opcode::kConvert:
    case Opcode::kReshape:
    case Opcode::kTranspose:
      return is_sum(0);
    default:
      return false;
  }
}
bool IsSumOfSquares(const Instruction* x) {
  int ops = 32;
  return IsSumOfSquares(x, ops);
}

Instruction* WhereChosen(Builder& b, Instruction* f, int64_t k, Instruction* t) {
  Instruction* both = b.Compare(Direction::kEq, f->operand(1 - k), f);
  Instruction* share = b.Select(both, b.Times(t, b.Number(t, 0.5)), t);
  return b.Masked(b.Compare(Direction::kEq, f->operand(k), f), share);
}

}  // namespace

// acos' = -1 / sqrt(1 - x^2)
KILN_PARTIAL(Acos) {
  return b.Scaled(b.Negate(t), b.Unary(Opcode::kRsqrt, OneMinusSquare(b, X(f))));
}
// asin' = 1 / sqrt(1 - x^2)
KILN_PARTIAL(Asin) { return b.Scaled(t, b.Unary(Opcode::kRsqrt, OneMinusSquare(b, X(f)))); }
// acosh' = 1 / (sqrt(x - 1) sqrt(x + 1))
KILN_PARTIAL(Acosh) {
  Instruction* x = X(f);
  Instruction* one = b.Number(x, 1);
  return b.Scaled(t, b.Times(b.Unary(Opcode::kRsqrt, b.Minus(x, one)),
                             b.Unary(Opcode::kRsqrt, b.Plus(x, one))));
}
// asinh' = 1 / sqrt(1 + x^2)
KILN_PARTIAL(Asinh) { return b.Scaled(t, b.Unary(Opcode::kRsqrt, OnePlusSquare(b, X(f)))); }
// atanh' = 1 / (1 - x^2)
KILN_PARTIAL(Atanh) {
  Instruction* x = X(f);
  return b.Scaled(t, b.Over(b.Number(x, 1), OneMinusSquare(b, x)));
}
// cbrt' = f / (3 x)
KILN_PARTIAL(Cbrt) {
  Instruction* square = b.Times(f, f);
  return b.Scaled(t, b.Over(b.Number(f, 1), b.Times(b.Number(f, 3), square)));
}
// cosh' = sinh
KILN_PARTIAL(Cosh) { return b.Scaled(t, b.Unary(Opcode::kSinh, X(f))); }
// sinh' = cosh
KILN_PARTIAL(Sinh) { return b.Scaled(t, b.Unary(Opcode::kCosh, X(f))); }
// cos' = -sin
KILN_PARTIAL(Cosine) { return b.ScaledIfMasked(b.Negate(t), b.Unary(Opcode::kSine, X(f))); }
// sin' = cos
KILN_PARTIAL(Sine) { return b.ScaledIfMasked(t, b.Unary(Opcode::kCosine, X(f))); }
// tan' = 1 + f^2
KILN_PARTIAL(Tan) { return b.Scaled(t, OnePlusSquare(b, f)); }
// tanh' = 1 - f^2
KILN_PARTIAL(Tanh) { return b.Times(t, OneMinusSquare(b, f)); }
// logistic' = f (1 - f)
KILN_PARTIAL(Logistic) { return b.Times(t, b.Times(f, b.Minus(b.Number(f, 1), f))); }
// exp' = f
KILN_PARTIAL(Exponential) { return b.Scaled(t, f); }
// expm1' = f + 1
KILN_PARTIAL(ExponentialMinusOne) { return b.Scaled(t, b.Plus(f, b.Number(f, 1))); }
// log' = 1 / x
KILN_PARTIAL(Log) { return b.Scaled(t, b.Over(b.Number(f, 1), X(f))); }
// log1p' = 1 / (1 + x)
KILN_PARTIAL(LogPlusOne) {
  Instruction* x = X(f);
  return b.Scaled(t, b.Over(b.Number(f, 1), b.Plus(b.Number(f, 1), x)));
}
// sqrt' = 1 / (2 f); at the norm of 0, which has no derivative, the subgradient 0
KILN_PARTIAL(Sqrt) {
  Instruction* factor = b.Over(b.Number(f, 0.5), f);
  if (IsFloat(f->shape().type()) && IsSumOfSquares(X(f))) {
    factor = b.Masked(b.Compare(Direction::kNe, f, b.Number(f, 0)), factor);
  }
  return b.Scaled(t, factor);
}
// rsqrt' = -f / (2 x)
KILN_PARTIAL(Rsqrt) { return b.Scaled(t, b.Times(b.Number(f, -0.5), b.Over(f, X(f)))); }
// erf' = 2 / sqrt(pi) exp(-x^2)
KILN_PARTIAL(Erf) {
  Instruction* x = X(f);
  Instruction* bell = b.Unary(Opcode::kExponential, b.Negate(b.Times(x, x)));
  return b.Times(t, b.Times(b.Number(f, 2 * std::numbers::inv_sqrtpi), bell));
}
// erfc' = -erf'
KILN_PARTIAL(Erfc) {
  Instruction* x = X(f);
  Instruction* bell = b.Unary(Opcode::kExponential, b.Negate(b.Times(x, x)));
  return b.Times(t, b.Times(b.Number(f, -2 * std::numbers::inv_sqrtpi), bell));
}
// erfinv' = sqrt(pi) / 2 exp(f^2)
KILN_PARTIAL(ErfInv) {
  Instruction* factor = b.Unary(Opcode::kExponential, b.Times(f, f));
  return b.Scaled(t, b.Times(b.Number(f, std::sqrt(std::numbers::pi) / 2), factor));
}
// lgamma' = digamma
KILN_PARTIAL(Lgamma) { return b.Scaled(t, b.Unary(Opcode::kDigamma, X(f))); }
// digamma' = polygamma(1, x)
KILN_PARTIAL(Digamma) {
  Instruction* x = X(f);
  return b.Scaled(t, b.Binary(Opcode::kPolygamma, b.Number(x, 1), x));
}
// d polygamma(n, x) / dx = polygamma(n + 1, x); the order n is an integer
KILN_PARTIAL(Polygamma) {
  if (k == 0) return nullptr;
  Instruction* order = b.Plus(X(f), b.Number(f, 1));
  return b.Scaled(t, b.Binary(Opcode::kPolygamma, order, Y(f)));
}
// d zeta(s, q) / dq = -s zeta(s + 1, q)
KILN_PARTIAL(Zeta) {
  if (k == 0) {
    b.Fail(Unimplemented("'", f->name(), "': kiln.zeta has no derivative by its first operand"));
    return nullptr;
  }
  Instruction* s = X(f);
  Instruction* next = b.Binary(Opcode::kZeta, b.Plus(s, b.Number(s, 1)), Y(f));
  return b.Scaled(t, b.Times(b.Negate(s), next));
}

// d (x y) = t y, t x
KILN_PARTIAL(Multiply) {
  Instruction* other = f->operand(1 - k);
  return IsFiniteConstant(other) ? b.Times(t, other) : b.ScaledIfMasked(t, other);
}
KILN_PARTIAL(MultiplyNoNan) { return k == 0 ? b.Scaled(t, Y(f)) : b.ScaledIfMasked(t, X(f)); }
// d (x / y) = t / y, -t (x / y) / y
KILN_PARTIAL(Divide) {
  Instruction* y = Y(f);
  if (!IsFloat(f->shape().type())) {
    return k == 0 ? b.Over(t, y) : b.Times(b.Negate(t), b.Over(f, y));
  }
  return b.Scaled(k == 0 ? t : b.Negate(t), b.Over(k == 0 ? b.Number(f, 1) : f, y));
}
// atan2(x, y): t y / (x^2 + y^2), -t x / (x^2 + y^2)
KILN_PARTIAL(Atan2) {
  Instruction *x = X(f), *y = Y(f), *factor = k == 0 ? y : x;
  if (IsFloat(f->shape().type())) {
    // The squares of large and of small numbers are none.
    Instruction* distance = b.Binary(Opcode::kHypot, x, y);
    factor = b.Over(b.Over(factor, distance), distance);
  } else {
    factor = b.Over(factor, b.Plus(b.Times(x, x), b.Times(y, y)));
  }
  return b.Scaled(k == 0 ? t : b.Negate(t), factor);
}
// hypot: t x / f, t y / f; 0 where both are 0
KILN_PARTIAL(Hypot) {
  Instruction* factor = b.Over(f->operand(k), f);
  return b.Scaled(t, b.Masked(b.Compare(Direction::kNe, f, b.Number(f, 0)), factor));
}
// d x^y = t y x^(y - 1), t f log(x); the former is 0 where y is, the latter where x is
KILN_PARTIAL(Power) {
  Instruction *x = X(f), *y = Y(f);
  Instruction* zero = b.Number(f, 0);
  if (k == 0) {
    if (y->IsConstantOf(0)) return nullptr;
    Instruction* power = b.Binary(Opcode::kPower, x, b.Minus(y, b.Number(f, 1)));
    Instruction* factor = b.Times(y, power);
    if (!IsNonzeroConstant(y)) factor = b.Masked(b.Compare(Direction::kNe, y, zero), factor);
    return b.Scaled(t, factor);
  }
  Instruction* is_zero = b.Compare(Direction::kEq, x, zero);
  Instruction* log = b.Unary(Opcode::kLog, b.Select(is_zero, b.Number(f, 1), x));
  return b.Scaled(t, b.Times(f, log));
}
// x - trunc(x / y) y: t, -t trunc(x / y)
KILN_PARTIAL(Remainder) {
  if (k == 0) return t;
  Instruction* quotient = b.Over(X(f), Y(f));
  Instruction* magnitude = b.Unary(Opcode::kFloor, b.Abs(quotient));
  return b.Scaled(b.Negate(t), b.Times(b.Unary(Opcode::kSign, quotient), magnitude));
}
// t where the operand is the result, half of it where both are
KILN_PARTIAL(Maximum) { return WhereChosen(b, f, k, t); }
KILN_PARTIAL(Minimum) { return WhereChosen(b, f, k, t); }

#undef KILN_PARTIAL

// Ops that are linear in their operands.

#define KILN_TRANSPOSE(Name)                                           \
  template <>                                                          \
  bool Transpose<Opcode::k##Name>(Reverse & reverse, Instruction * op, \
                                  const Derivative& cotangent)

KILN_TRANSPOSE(Add) {
  reverse.Add(X(op), cotangent.array);
  reverse.Add(Y(op), cotangent.array);
  return true;
}
KILN_TRANSPOSE(Subtract) {
  reverse.Add(X(op), cotangent.array);
  if (reverse.IsActive(Y(op))) reverse.Add(Y(op), reverse.builder().Negate(cotangent.array));
  return true;
}
KILN_TRANSPOSE(Negate) {
  reverse.Add(X(op), reverse.builder().Negate(cotangent.array));
  return true;
}
KILN_TRANSPOSE(Copy) {
  reverse.Add(X(op), cotangent.array);
  return true;
}
// To a complex number from a real one: the real part.
KILN_TRANSPOSE(Convert) {
  Builder& b = reverse.builder();
  const ElementType from = X(op)->shape().type();
  Instruction* t = cotangent.array;
  if (!IsComplex(from) && IsComplex(t->shape().type())) t = b.Unary(Opcode::kReal, t);
  reverse.Add(X(op), b.Convert(t, from));
  return true;
}
KILN_TRANSPOSE(ReducePrecision) {
  Builder& b = reverse.builder();
  reverse.Add(X(op), b.Add(Opcode::kReducePrecision, {cotangent.array}, op->attributes()));
  return true;
}
// A real number is its own real part, and has no imaginary one.
KILN_TRANSPOSE(Real) {
  Builder& b = reverse.builder();
  Instruction* t = cotangent.array;
  if (IsComplex(X(op)->shape().type())) t = b.Binary(Opcode::kComplex, t, b.Zeros(t->shape()));
  reverse.Add(X(op), t);
  return true;
}
// Im(i y) = y, and the transpose of y -> i y, without a conjugate, is t -> -Im t
KILN_TRANSPOSE(Imag) {
  Builder& b = reverse.builder();
  Instruction* t = cotangent.array;
  if (!IsComplex(X(op)->shape().type())) return true;
  reverse.Add(X(op), b.Binary(Opcode::kComplex, b.Zeros(t->shape()), b.Negate(t)));
  return true;
}
KILN_TRANSPOSE(Complex) {
  Builder& b = reverse.builder();
  Instruction* t = cotangent.array;
  if (reverse.IsActive(X(op))) reverse.Add(X(op), b.Unary(Opcode::kReal, t));
  if (reverse.IsActive(Y(op))) reverse.Add(Y(op), b.Negate(b.Unary(Opcode::kImag, t)));
  return true;
}
// select(p, x, y): select(p, t, 0), select(p, 0, t)
KILN_TRANSPOSE(Select) {
  Builder& b = reverse.builder();
  Instruction *pred = op->operand(0), *t = cotangent.array;
  if (reverse.IsActive(op->operand(1))) reverse.Add(op->operand(1), b.Masked(pred, t));
  if (reverse.IsActive(op->operand(2))) {
    reverse.Add(op->operand(2), b.Select(pred, b.Zeros(t->shape()), t));
  }
  return true;
}

#undef KILN_TRANSPOSE

namespace {

// The pred, a scalar bound's too, in all places of a shape.
Instruction* In(Builder& b, const Shape& shape, Instruction* x) {
  return x->shape().rank() == shape.rank() ? x : b.Spread(shape, x);
}

}  // namespace

// |x|' = sign(x); of a complex number t -> Re(t conj(x) / |x|)
template <>
Derivative Tangent<Opcode::kAbs>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  Instruction *x = X(op), *t = forward.TangentOf(x).array;
  if (IsFloat(x->shape().type())) return {b.Times(t, b.Unary(Opcode::kSign, x))};
  Instruction* sign = b.Unary(Opcode::kSign, x);
  return {b.Plus(b.Times(b.Unary(Opcode::kReal, t), b.Unary(Opcode::kReal, sign)),
                 b.Times(b.Unary(Opcode::kImag, t), b.Unary(Opcode::kImag, sign)))};
}

// Of complex numbers x / |x|: (t - f Re(t conj(f))) / |x|; 0 at 0
template <>
Derivative Tangent<Opcode::kSign>(Forward& forward, Instruction* op) {
  if (IsFloat(op->shape().type())) return {};
  Builder& b = forward.builder();
  Instruction *x = X(op), *t = forward.TangentOf(x).array;
  Instruction* along = b.Plus(b.Times(b.Unary(Opcode::kReal, t), b.Unary(Opcode::kReal, op)),
                              b.Times(b.Unary(Opcode::kImag, t), b.Unary(Opcode::kImag, op)));
  Instruction* across = b.Minus(t, b.Times(op, b.Convert(along, op->shape().type())));
  Instruction* size = b.Abs(x);
  Instruction* is_zero = b.Compare(Direction::kEq, size, b.Number(size, 0));
  Instruction* safe = b.Select(is_zero, b.Number(size, 1), size);
  return {b.Over(across, b.Convert(safe, op->shape().type()))};
}

namespace {

// Whether x < y: of complex numbers, whose order only extrema have, whether it is the smaller one.
Instruction* IsLess(Builder& b, Instruction* x, Instruction* y) {
  if (IsFloat(x->shape().type())) return b.Compare(Direction::kLt, x, y);
  Instruction* is_least = b.Compare(Direction::kEq, b.Binary(Opcode::kMinimum, x, y), x);
  return b.And(is_least, b.Compare(Direction::kNe, x, y));
}

}  // namespace

// clamp(low, x, high): t where low < x < high, the bound's tangent where it is beyond x
template <>
Derivative Tangent<Opcode::kClamp>(Forward& forward, Instruction* op) {
  Builder& b = forward.builder();
  const Shape& shape = op->shape();
  Instruction *low = In(b, shape, op->operand(0)), *x = op->operand(1),
              *high = In(b, shape, op->operand(2));
  Derivative sum;
  if (Instruction* t = forward.TangentOf(x).array) {
    Instruction* inside = b.And(IsLess(b, low, x), IsLess(b, x, high));
    sum = b.Accumulate(sum, Derivative{b.Masked(inside, t)});
  }
  if (Instruction* t = forward.TangentOf(op->operand(0)).array) {
    sum = b.Accumulate(sum, Derivative{b.Masked(IsLess(b, x, low), In(b, shape, t))});
  }
  if (Instruction* t = forward.TangentOf(op->operand(2)).array) {
    sum = b.Accumulate(sum, Derivative{b.Masked(IsLess(b, high, x), In(b, shape, t))});
  }
  return sum;
}

}  // namespace kiln::grad
