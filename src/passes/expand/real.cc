#include "passes/expand/real.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

constexpr int64_t kMantissaBits = 52, kBias = 1023;

Instruction* SignBit(Builder& b, Real x) {
  Instruction* bits = b.Bits(x.value(), ElementType::kS64);
  return b.And(
      bits, b.Splat(bits->shape(), Literal::Scalar<int64_t>(ElementType::kS64,
                                                            std::numeric_limits<int64_t>::min())));
}

// 2^(up - e) for the exponent e of x, or for the even one at or below it.
Real InverseScale(Real x, int up, bool even) {
  Builder& b = x.builder();
  // The field of the exponent -e is 2 * bias - the field of x; kept from 1 to the largest. The bias
  // is odd, so that even exponents have odd fields.
  Instruction* bits = b.Bits(x.value(), ElementType::kS64);
  auto number = [&](int64_t n) { return b.Number(bits, static_cast<double>(n)); };
  const Shape scalar = Shape::Scalar(ElementType::kS64);
  Instruction* field = b.Binary(Opcode::kShiftRightLogical, bits, number(kMantissaBits));
  Instruction* inverse = b.Minus(number(2 * kBias + up), field);
  inverse =
      b.Add(Opcode::kClamp, {b.Number(scalar, 1), inverse,
                             b.Number(scalar, static_cast<double>(2 * kBias - (even ? 1 : 0)))});
  if (even) inverse = b.Or(inverse, number(1));
  inverse = b.Binary(Opcode::kShiftLeft, inverse, number(kMantissaBits));
  return {b, b.Bits(inverse, ElementType::kF64)};
}

}  // namespace

Real ZeroOf(Real x) {
  Builder& b = x.builder();
  return {b, b.Bits(SignBit(b, x), ElementType::kF64)};
}

Real WithSign(Real size, Real x) {
  Builder& b = x.builder();
  Instruction* bits = b.Bits(size.value(), ElementType::kS64);
  return {b, b.Bits(b.Or(bits, SignBit(b, x)), ElementType::kF64)};
}

Real InversePowerOfTwo(Real x, int up) { return InverseScale(x, up, false); }
Real InverseSquareOfPowerOfTwo(Real x) { return InverseScale(x, 0, true); }

Real ExponentOf(Real power) {
  Builder& b = power.builder();
  Instruction* bits = b.Bits(power.value(), ElementType::kS64);
  bits = b.Binary(Opcode::kShiftRightLogical, bits, b.Number(bits, kMantissaBits));
  return Real(b, b.Convert(bits, ElementType::kF64)) - kBias;
}

Real PowerOfTwo(Real k) {
  Builder& b = k.builder();
  Instruction* bits = b.Convert((k + kBias).value(), ElementType::kS64);
  return {b, b.Bits(b.Binary(Opcode::kShiftLeft, bits, b.Number(bits, kMantissaBits)),
                    ElementType::kF64)};
}

// Half of the exponent is a normal number's, and the intermediate product is no smaller than both
// ends.
Real TimesPowerOfTwo(Real x, Real k) {
  const Real half = (k * 0.5).Of(Opcode::kFloor);
  return x * PowerOfTwo(half) * PowerOfTwo(k - half);
}

}  // namespace kiln::passes::expand
