// Formulas over arrays of floats, written as C++ writes them: each operator is an op.
#pragma once

#include <limits>

#include "passes/expand/builder.h"

namespace kiln::passes::expand {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An array of preds.
class Truth {
 public:
  Truth(Builder& b, ir::Instruction* value) : b_(&b), value_(value) {}
  Builder& builder() const { return *b_; }
  ir::Instruction* value() const { return value_; }

  friend Truth operator&(Truth x, Truth y) { return {*x.b_, x.b_->And(x.value_, y.value_)}; }
  friend Truth operator|(Truth x, Truth y) { return {*x.b_, x.b_->Or(x.value_, y.value_)}; }

 private:
  Builder* b_;
  ir::Instruction* value_;
};

// An array of floats. Numbers beside it are repeated to its shape.
class Real {
 public:
  Real(Builder& b, ir::Instruction* value) : b_(&b), value_(value) {}
  Builder& builder() const { return *b_; }
  ir::Instruction* value() const { return value_; }
  ElementType type() const { return value_->shape().type(); }

  Real Number(double x) const { return {*b_, b_->Number(value_, x)}; }
  Real To(ElementType type) const { return {*b_, b_->Convert(value_, type)}; }
  Real Of(Opcode function) const { return {*b_, b_->Unary(function, value_)}; }
  Real Of(Opcode function, Real y) const { return {*b_, b_->Binary(function, value_, y.value_)}; }
  Truth Is(Direction direction, Real y) const {
    return {*b_, b_->Compare(direction, value_, y.value_)};
  }
  Truth Is(Direction direction, double y) const { return Is(direction, Number(y)); }

  Real operator-() const { return Of(Opcode::kNegate); }
  friend Real operator+(Real x, Real y) { return x.Of(Opcode::kAdd, y); }
  friend Real operator-(Real x, Real y) { return x.Of(Opcode::kSubtract, y); }
  friend Real operator*(Real x, Real y) { return x.Of(Opcode::kMultiply, y); }
  friend Real operator/(Real x, Real y) { return x.Of(Opcode::kDivide, y); }
  friend Real operator+(Real x, double y) { return x + x.Number(y); }
  friend Real operator-(Real x, double y) { return x - x.Number(y); }
  friend Real operator*(Real x, double y) { return x * x.Number(y); }
  friend Real operator/(Real x, double y) { return x / x.Number(y); }
  friend Real operator-(double x, Real y) { return y.Number(x) - y; }
  friend Real operator/(double x, Real y) { return y.Number(x) / y; }

  template <typename T>
  friend Truth operator<(Real x, T y) {
    return x.Is(Direction::kLt, y);
  }
  template <typename T>
  friend Truth operator<=(Real x, T y) {
    return x.Is(Direction::kLe, y);
  }
  template <typename T>
  friend Truth operator>(Real x, T y) {
    return x.Is(Direction::kGt, y);
  }
  template <typename T>
  friend Truth operator>=(Real x, T y) {
    return x.Is(Direction::kGe, y);
  }
  template <typename T>
  friend Truth operator==(Real x, T y) {
    return x.Is(Direction::kEq, y);
  }
  template <typename T>
  friend Truth operator!=(Real x, T y) {
    return x.Is(Direction::kNe, y);
  }

 private:
  Builder* b_;
  ir::Instruction* value_;
};

inline Real Abs(Real x) { return x.Of(Opcode::kAbs); }
inline Real Sqrt(Real x) { return x.Of(Opcode::kSqrt); }
inline Real Cbrt(Real x) { return x.Of(Opcode::kCbrt); }
inline Real Exp(Real x) { return x.Of(Opcode::kExponential); }
inline Real Expm1(Real x) { return x.Of(Opcode::kExponentialMinusOne); }
inline Real Log(Real x) { return x.Of(Opcode::kLog); }
inline Real Sin(Real x) { return x.Of(Opcode::kSine); }
inline Real Cos(Real x) { return x.Of(Opcode::kCosine); }
inline Real Sinh(Real x) { return x.Of(Opcode::kSinh); }
inline Real Cosh(Real x) { return x.Of(Opcode::kCosh); }
inline Real Atan2(Real y, Real x) { return y.Of(Opcode::kAtan2, x); }
inline Real Max(Real x, Real y) { return x.Of(Opcode::kMaximum, y); }
inline Real Min(Real x, Real y) { return x.Of(Opcode::kMinimum, y); }

inline Real Select(Truth p, Real yes, Real no) {
  return {p.builder(), p.builder().Select(p.value(), yes.value(), no.value())};
}
inline Real Select(Truth p, double yes, Real no) { return Select(p, no.Number(yes), no); }
inline Real Select(Truth p, Real yes, double no) { return Select(p, yes, yes.Number(no)); }

// Of f64: a zero with x's sign, and `size`, which is not negative, with x's sign.
Real ZeroOf(Real x);
Real WithSign(Real size, Real x);
// Of a positive f64 2^e m, 1 <= m < 2: 2^(up - e), within the powers of two that are normal
// numbers; of 0 the largest, of an infinity or a NaN the least.
Real InversePowerOfTwo(Real x, int up = 0);
// The same of an even power, so that its root is one, too: 1 <= m < 4.
Real InverseSquareOfPowerOfTwo(Real x);

// k of a number 2^k.
Real ExponentOf(Real power);
// 2^k for an integer k, where that is a normal number.
Real PowerOfTwo(Real k);
// x * 2^k for an integer k up to 2000.
Real TimesPowerOfTwo(Real x, Real k);

}  // namespace kiln::passes::expand
