// Functions of complex numbers, made of ops on their real and imaginary parts.
#pragma once

#include <optional>
#include <span>

#include "passes/expand/pairs.h"

namespace kiln::passes::expand {

// A complex value: two arrays of f32 or f64 of one shape.
struct Parts {
  ir::Instruction* real;
  ir::Instruction* imag;
};

// The absolute value: no more than the result overflows.
ir::Instruction* ComplexAbs(Builder& b, const Parts& x);

// An op of the op table with a complex result, on complex operands; nothing if it is not in
// complex_functions.cc.
std::optional<Parts> ComplexFunction(Builder& b, Opcode opcode, std::span<const Parts> operands);

// complex_arithmetic.cc: in the type of the parts, but for quotients.
using Arithmetic = Parts (*)(Builder& b, std::span<const Parts> x);
Parts ComplexNegate(Builder& b, std::span<const Parts> x);
Parts ComplexAdd(Builder& b, std::span<const Parts> x);
Parts ComplexSubtract(Builder& b, std::span<const Parts> x);
Parts ComplexMultiply(Builder& b, std::span<const Parts> x);
// Scales both sides by powers of two first, against overflow and lost small numbers.
Parts ComplexDivide(Builder& b, std::span<const Parts> x);
Parts ComplexMaximum(Builder& b, std::span<const Parts> x);
Parts ComplexMinimum(Builder& b, std::span<const Parts> x);
Parts ComplexClamp(Builder& b, std::span<const Parts> x);

// A point with parts of f64. Parts of c64 are converted, and results rounded: products of a few
// parts do not overflow, and half of the digits may be lost. Formulas for parts given in f64 need
// care.
struct Point {
  Real x, y;
  bool is_double;
};
using Function = Point (*)(const Point& z);

// a b + c d, rounded once or nearly so.
Real SumOfProducts(Real a, Real b, Real c, Real d, bool is_double);

// complex_roots.cc
Real Size(const Point& z);
Point Root(const Point& z);
Point InverseRoot(const Point& z);
Point CubeRoot(const Point& z);
Point SignOf(const Point& z);
// complex_exponentials.cc
Point Exponential(const Point& z);
Point ExponentialMinusOne(const Point& z);
Point Logistic(const Point& z);
// complex_hyperbolic.cc: of angles as well
Point HyperbolicSine(const Point& z);
Point HyperbolicCosine(const Point& z);
Point HyperbolicTangent(const Point& z);
Point Sine(const Point& z);
Point Cosine(const Point& z);
Point Tangent(const Point& z);
// complex_logarithms.cc
Point Logarithm(const Point& z);
Point LogarithmPlusOne(const Point& z);
Point Power(const Point& z, const Point& exponent);
// complex_arcs.cc
Point ArcSine(const Point& z);
Point ArcCosine(const Point& z);
Point HyperbolicArcSine(const Point& z);
Point HyperbolicArcCosine(const Point& z);
Point HyperbolicArcTangent(const Point& z);
// The angle of the point (x, y), of complex coordinates.
Point Angle(const Point& y, const Point& x);

}  // namespace kiln::passes::expand
