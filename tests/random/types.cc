#include "random/types.h"

#include <iterator>

#include "random/ops.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

// Where a complex function is smooth: both parts within `bound` of 0, or the real part `least` and
// more above it.
struct ComplexFunction {
  Opcode opcode;
  double bound, least = 0;
};
constexpr ComplexFunction kComplexFunctions[] = {{Opcode::kExponential, 3},
                                                 {Opcode::kExponentialMinusOne, 3},
                                                 {Opcode::kSine, 2},
                                                 {Opcode::kCosine, 2},
                                                 {Opcode::kTan, 0.75},
                                                 {Opcode::kTanh, 0.75},
                                                 {Opcode::kSinh, 2},
                                                 {Opcode::kCosh, 2},
                                                 {Opcode::kAsin, 0.5},
                                                 {Opcode::kAcos, 0.5},
                                                 {Opcode::kAtanh, 0.5},
                                                 {Opcode::kAsinh, 0.5},
                                                 {Opcode::kLogistic, 2},
                                                 {Opcode::kLog, 8, 0.5},
                                                 {Opcode::kLogPlusOne, 8, 0.5},
                                                 {Opcode::kSqrt, 8, 0.5},
                                                 {Opcode::kRsqrt, 8, 0.5},
                                                 {Opcode::kCbrt, 8, 0.5},
                                                 {Opcode::kSign, 8, 0.5},
                                                 {Opcode::kAcosh, 8, 1.5}};

class Generator : public RandomMaker {
 public:
  explicit Generator(const RandomSource& source) : RandomMaker(source) {}

  Instruction* Clamped(Instruction* x, double bound) {
    Instruction* low = Scalar(x->shape().type(), -bound);
    return Op(Opcode::kClamp, {low, x, Scalar(x->shape().type(), bound)});
  }
  Instruction* Real(Instruction* x) { return Op(Opcode::kReal, {x}); }
  Instruction* Imag(Instruction* x) { return Op(Opcode::kImag, {x}); }
  Instruction* Complex(Instruction* real, Instruction* imag) {
    return Op(Opcode::kComplex, {real, imag});
  }

  Instruction* Bounded(Instruction* x, double bound) {
    Instruction* real = Clamped(Real(x), bound);
    return Complex(real, Clamped(Imag(x), bound));
  }
  // To the right of `least`.
  Instruction* Right(Instruction* x, double bound, double least) {
    Instruction* real = Op(Opcode::kAbs, {Clamped(Real(x), bound)});
    real = Op(Opcode::kAdd, {real, Full(real->shape(), least)});
    return Complex(real, Clamped(Imag(x), bound));
  }
};

}  // namespace

Instruction* BoundedParts(const RandomSource& source, Instruction* x, double bound) {
  return Generator(source).Bounded(x, bound);
}

RandomOp RandomComplexFunction(const RandomSource& source, Instruction* x) {
  Generator g(source);
  if (g.Chance(70)) {
    const ComplexFunction& f =
        kComplexFunctions[g.Pick(0, static_cast<int>(std::size(kComplexFunctions)) - 1)];
    Instruction* from = f.least == 0 ? g.Bounded(x, f.bound) : g.Right(x, f.bound, f.least);
    return {{g.Op(f.opcode, {from})}, {x}, /*rounds=*/true};
  }
  switch (g.Pick(0, 3)) {
    case 0:
      return {{g.Op(Opcode::kNegate, {x})}, {x}};
    case 1:
      return {{g.Op(Opcode::kCopy, {x})}, {x}};
    case 2: {
      Instruction* real = g.Real(x);
      return {{g.Complex(real, g.Op(Opcode::kNegate, {g.Imag(x)}))}, {x}};
    }
    default: {
      Instruction* imag = g.Imag(x);
      return {{g.Complex(imag, g.Real(x))}, {x}};
    }
  }
}

RandomOp RandomComplexOp(const RandomSource& source, Instruction* x, Instruction* y, bool exact) {
  Generator g(source);
  auto rounded = [&](Instruction* result) { return RandomOp{{result}, {x, y}, /*rounds=*/true}; };
  switch (g.Pick(0, exact ? 8 : 6)) {
    case 0:
    case 1:
      return rounded(g.Op(Opcode::kAdd, {x, y}));
    case 2:
      return rounded(g.Op(Opcode::kSubtract, {x, y}));
    case 3:
      return rounded(g.Bounded(g.Op(Opcode::kMultiply, {x, y}), 8));
    case 4:
      return rounded(g.Op(Opcode::kDivide, {x, g.Right(y, 8, 0.5)}));
    case 5: {
      Instruction* base = g.Right(x, 2, 0.5);
      return rounded(g.Op(Opcode::kPower, {base, g.Bounded(y, 1)}));
    }
    case 6: {
      Instruction* low = g.Bounded(x, 0.25);
      return rounded(g.Op(Opcode::kAtan2, {low, g.Right(y, 2, 1)}));
    }
    case 7:
      // A number that is its own bound has no derivative.
      if (g.Chance(50) && x != y) {
        return {{g.Op(Opcode::kClamp, {g.Full(x->shape(), 0), x, y})}, {x, y}};
      }
      [[fallthrough]];
    default:
      return {{g.Op(g.Chance(50) ? Opcode::kMaximum : Opcode::kMinimum, {x, y})}, {x, y}};
  }
}

RandomOp RandomParts(const RandomSource& source, Instruction* x) {
  Generator g(source);
  if (g.Chance(30)) return {{g.Op(Opcode::kAbs, {x})}, {x}, /*rounds=*/true};
  RandomOp op{.data = {x}};
  if (g.Chance(70)) op.results.push_back(g.Real(x));
  if (op.results.empty() || g.Chance(50)) op.results.push_back(g.Imag(x));
  return op;
}

Instruction* RandomNarrowFunction(const RandomSource& source, Instruction* x) {
  Generator g(source);
  static constexpr Opcode kOps[] = {Opcode::kAbs,
                                    Opcode::kCeil,
                                    Opcode::kCopy,
                                    Opcode::kFloor,
                                    Opcode::kReal,
                                    Opcode::kNegate,
                                    Opcode::kRoundNearestAfz,
                                    Opcode::kRoundNearestEven,
                                    Opcode::kSign,
                                    Opcode::kSqrt};
  if (g.Chance(20)) {
    static constexpr Opcode kPairs[] = {Opcode::kAdd, Opcode::kMultiply, Opcode::kDivide};
    const double by = g.Pick(1, 3);
    return g.Op(kPairs[g.Pick(0, 2)], {x, g.Full(x->shape(), by)});
  }
  return g.Op(kOps[g.Pick(0, static_cast<int>(std::size(kOps)) - 1)], {x});
}

Instruction* RandomNarrowOp(const RandomSource& source, Instruction* x, Instruction* y) {
  Generator g(source);
  static constexpr Opcode kOps[] = {Opcode::kAdd,      Opcode::kSubtract, Opcode::kMultiply,
                                    Opcode::kDivide,   Opcode::kMaximum,  Opcode::kMinimum,
                                    Opcode::kRemainder};
  if (IsFloat(x->shape().type()) && g.Chance(15)) return g.Op(Opcode::kMultiplyNoNan, {x, y});
  return g.Op(kOps[g.Pick(0, static_cast<int>(std::size(kOps)) - 1)], {x, y});
}

Instruction* WithoutNans(const RandomSource& source, Instruction* x) {
  if (!HasSeveralNans(x->shape().type())) return x;
  Generator g(source);
  Instruction* number = g.Add({.opcode = Opcode::kCompare,
                               .operands = {x, x},
                               .attributes = {{Attr::kDirection, Direction::kEq}}});
  return g.Op(Opcode::kSelect, {number, x, g.Full(x->shape(), 1)});
}

Instruction* RandomNarrowBits(const RandomSource& source, ElementType type) {
  Generator g(source);
  const int64_t bits = BitWidth(type);
  const ElementType word = bits == 8 ? ElementType::kU8 : ElementType::kU4;
  if (BitWidth(word) != bits) return nullptr;
  // All of them, from a number on that is not known.
  const Shape shape(word, {int64_t{1} << bits});
  Instruction* count = g.Add({.opcode = Opcode::kIota,
                              .attributes = {{Attr::kIotaDimension, int64_t{0}}},
                              .shape = shape});
  const auto number = static_cast<int64_t>(source.computation.parameters().size());
  Instruction* from = g.Add({.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, number}},
                             .shape = Shape::Scalar(word)});
  from = g.Add({.opcode = Opcode::kBroadcast,
                .operands = {from},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = shape});
  return g.Add({.opcode = Opcode::kBitcastConvert,
                .operands = {g.Op(Opcode::kAdd, {count, from})},
                .shape = Shape(type, shape.dimensions())});
}

}  // namespace kiln::testing
