// The derivative of the Bessel function I1e(x) = e^-|x| I_1(x).
#include <span>

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// Up to the limit by the series, beyond it by a polynomial in 1/|x|.
constexpr double kLimit = 12;
constexpr int kTerms = 27;
// Of I1e'(1/t) t^(-3/2) for t up to 1 / kLimit: interpolates at Chebyshev's nodes, with a relative
// error of 0.4 ULP.
constexpr double kBeyond[] = {
    -0x1.9884533d43650p-3, 0x1.cb94dda4eb654p-3,  0x1.debb11910f553p-4, 0x1.2538f4428de23p-3,
    0x1.09184c3181b74p-2,  0x1.362a7ca3cd466p-1,  0x1.18b7b47be6645p1,  -0x1.1b29f97f6fd1ep5,
    0x1.657d94cef0222p11,  -0x1.1b2058662c08dp17, 0x1.57360c28e7c16p22, -0x1.3dfb035097562p27,
    0x1.c42c0e4621780p31,  -0x1.ebc6a970ab6d9p35, 0x1.94d4058035a09p39, -0x1.ee8cf72f4e940p42,
    0x1.b14db31d74483p45,  -0x1.00b8ee611a368p48, 0x1.6f91775dd30dfp49, -0x1.df46922c9f185p49};

}  // namespace

// I1e' is an even function of x; for a = |x|
//   e^-a (I_1'(a) - I_1(a)), where I_1'(a) = sum over k of (2k + 1) / (2 k! (k + 1)!) (a^2 / 4)^k,
// is the difference of positive numbers, of which there is little left for large ones. In f64,
// whatever the type: the terms are many.
template <>
Instruction* Partial<Opcode::kBesselI1e>(Builder& b, Instruction* f, int64_t, Instruction* t) {
  Instruction* a = b.Convert(b.Abs(f->operand(0)), ElementType::kF64);
  Instruction* limit = b.Number(a, kLimit);
  Instruction* is_near = b.Compare(Direction::kLt, a, limit);
  const auto polynomial = [&](Instruction* x, std::span<const double> coefficients) {
    Instruction* sum = b.Number(x, coefficients.back());
    for (size_t k = coefficients.size() - 1; k-- > 0;) {
      sum = b.Plus(b.Times(sum, x), b.Number(x, coefficients[k]));
    }
    return sum;
  };
  // Each part is finite on the other's side.
  Instruction* near = b.Select(is_near, a, limit);
  double series[kTerms] = {0.5}, term = 0.5;
  for (int k = 1; k < kTerms; ++k) {
    term /= k * (k + 1);
    series[k] = (2 * k + 1) * term;
  }
  Instruction* square = b.Times(near, b.Times(near, b.Number(near, 0.25)));
  Instruction* scaled =
      b.Times(b.Unary(Opcode::kExponential, b.Negate(near)), polynomial(square, series));
  Instruction* inner = b.Minus(scaled, b.Unary(Opcode::kBesselI1e, near));
  Instruction* far = b.Over(b.Number(a, 1), b.Select(is_near, limit, a));
  Instruction* power = b.Times(far, b.Unary(Opcode::kSqrt, far));
  Instruction* outer = b.Times(power, polynomial(far, kBeyond));
  return b.Times(t, b.Convert(b.Select(is_near, inner, outer), f->shape().type()));
}

}  // namespace kiln::grad
