#include "passes/expand/complex_functions.h"

namespace kiln::passes::expand {
namespace {

struct ArithmeticRow {
  Opcode opcode;
  Arithmetic function;
};
constexpr ArithmeticRow kArithmetic[] = {
    {Opcode::kAdd, ComplexAdd},         {Opcode::kClamp, ComplexClamp},
    {Opcode::kDivide, ComplexDivide},   {Opcode::kMaximum, ComplexMaximum},
    {Opcode::kMinimum, ComplexMinimum}, {Opcode::kMultiply, ComplexMultiply},
    {Opcode::kNegate, ComplexNegate},   {Opcode::kSubtract, ComplexSubtract},
};

struct FunctionRow {
  Opcode opcode;
  Function function;
};
constexpr FunctionRow kFunctions[] = {
    {Opcode::kAcos, ArcCosine},
    {Opcode::kAcosh, HyperbolicArcCosine},
    {Opcode::kAsin, ArcSine},
    {Opcode::kAsinh, HyperbolicArcSine},
    {Opcode::kAtanh, HyperbolicArcTangent},
    {Opcode::kCbrt, CubeRoot},
    {Opcode::kCosh, HyperbolicCosine},
    {Opcode::kCosine, Cosine},
    {Opcode::kExponential, Exponential},
    {Opcode::kExponentialMinusOne, ExponentialMinusOne},
    {Opcode::kLog, Logarithm},
    {Opcode::kLogPlusOne, LogarithmPlusOne},
    {Opcode::kLogistic, Logistic},
    {Opcode::kRsqrt, InverseRoot},
    {Opcode::kSign, SignOf},
    {Opcode::kSine, Sine},
    {Opcode::kSinh, HyperbolicSine},
    {Opcode::kSqrt, Root},
    {Opcode::kTan, Tangent},
    {Opcode::kTanh, HyperbolicTangent},
};

struct FunctionOfTwoRow {
  Opcode opcode;
  Point (*function)(const Point& x, const Point& y);
};
constexpr FunctionOfTwoRow kFunctionsOfTwo[] = {
    {Opcode::kAtan2, Angle},
    {Opcode::kPower, Power},
};

Point Widened(Builder& b, const Parts& z) {
  const Real x(b, z.real), y(b, z.imag);
  return {x.To(ElementType::kF64), y.To(ElementType::kF64), x.type() == ElementType::kF64};
}

Parts Narrowed(const Point& z, ElementType type) {
  return {z.x.To(type).value(), z.y.To(type).value()};
}

}  // namespace

ir::Instruction* ComplexAbs(Builder& b, const Parts& x) {
  const Point z = Widened(b, x);
  if (z.is_double) return Size(z).value();
  // Infinities are told apart before the parts are widened, in half as many vectors.
  const Real real(b, x.real), imag(b, x.imag);
  const Truth is_infinite = (Abs(real) == kInfinity) | (Abs(imag) == kInfinity);
  return Select(is_infinite, kInfinity, Sqrt(z.x * z.x + z.y * z.y).To(real.type())).value();
}

std::optional<Parts> ComplexFunction(Builder& b, Opcode opcode, std::span<const Parts> operands) {
  for (const ArithmeticRow& row : kArithmetic) {
    if (row.opcode == opcode) return row.function(b, operands);
  }
  const ElementType type = operands[0].real->shape().type();
  for (const FunctionRow& row : kFunctions) {
    if (row.opcode == opcode) return Narrowed(row.function(Widened(b, operands[0])), type);
  }
  for (const FunctionOfTwoRow& row : kFunctionsOfTwo) {
    if (row.opcode != opcode) continue;
    return Narrowed(row.function(Widened(b, operands[0]), Widened(b, operands[1])), type);
  }
  return std::nullopt;
}

}  // namespace kiln::passes::expand
