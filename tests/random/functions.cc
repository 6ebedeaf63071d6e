#include "random/functions.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "random/ops.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

// Functions of the op table without a case of their own in random graphs.
const std::vector<Opcode>& OtherFunctions() {
  static const std::vector<Opcode> others = [] {
    constexpr Opcode kOwnCase[] = {
        Opcode::kAcosh,    Opcode::kAtan2,       Opcode::kCbrt,
        Opcode::kDigamma,  Opcode::kExponential, Opcode::kExponentialMinusOne,
        Opcode::kLgamma,   Opcode::kLog,         Opcode::kLogPlusOne,
        Opcode::kLogistic, Opcode::kPolygamma,   Opcode::kPower,
        Opcode::kRsqrt,    Opcode::kSqrt,        Opcode::kTanh,
        Opcode::kZeta};
    std::vector<Opcode> found;
    for (int k = 0; k < kOpcodeCount; ++k) {
      const auto opcode = static_cast<Opcode>(k);
      const bool is_bounded =
          std::ranges::count(kBoundedFunctions, opcode, &BoundedFunction::opcode) > 0;
      const bool has_case = is_bounded || std::ranges::count(kOwnCase, opcode) > 0;
      if (IsTranscendental(opcode) && !has_case) found.push_back(opcode);
    }
    return found;
  }();
  return others;
}

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x, bool exact)
      : RandomMaker(source), x_(x), exact_(exact) {}

  RandomOp Function() {
    const std::vector<Opcode>& others = OtherFunctions();
    int n = Pick(0, std::size(kBoundedFunctions) + 9 + others.size());
    if (n < static_cast<int>(std::size(kBoundedFunctions))) {
      const BoundedFunction& f = kBoundedFunctions[n];
      return Rounded(Op(f.opcode, {Clamped(f.bound)}));
    }
    switch (n - static_cast<int>(std::size(kBoundedFunctions))) {
      case 0:
        return Rounded(Op(Opcode::kCbrt, {Above(0.5)}));
      case 1:
        return Rounded(Op(Opcode::kAcosh, {Above(1.5)}));
      case 2: {
        // Every half of the plane, but not its origin, nor the cut where the sign of x decides.
        bool turned = Chance(50);
        Instruction* beside = Above(0.5);
        if ((turned || exact_) && Chance(50)) beside = Op(Opcode::kNegate, {beside});
        return Rounded(Op(Opcode::kAtan2, {turned ? beside : x_, turned ? x_ : beside}));
      }
      case 3:
        return {{Op(Opcode::kReal, {x_})}, {x_}};
      case 4:
        if (source_.smooth) return Rounded(Op(Opcode::kSine, {x_}));
        return {{Op(Opcode::kNextAfter, {x_, Clamped(1)})}, {x_}};
      case 5:
        return Rounded(Op(Opcode::kLgamma, {Above(0.5)}));
      case 6:
        return Rounded(Op(Opcode::kDigamma, {Above(1)}));
      case 7:
        return Rounded(Op(Opcode::kZeta, {Full(x_->shape(), 3), Above(1)}));
      case 8:
        return Rounded(Op(Opcode::kPolygamma, {Full(x_->shape(), 2), Above(1)}));
      case 9:
        return {{Op(Opcode::kImag, {x_})}, {}};
      default:
        return OnPositive(others[n - std::size(kBoundedFunctions) - 10]);
    }
  }

 private:
  RandomOp Rounded(Instruction* result) { return {{result}, {x_}, /*rounds=*/true}; }

  RandomOp OnPositive(Opcode function) {
    std::vector<Instruction*> operands = {Above(0.5)};
    while (std::ssize(operands) < ArityOf(function).min) operands.push_back(Above(1));
    return Rounded(Op(function, std::move(operands)));
  }

  Instruction* Clamped(double bound) {
    const ElementType type = x_->shape().type();
    Instruction* low = Scalar(type, LowerBound(type, bound));
    return Op(Opcode::kClamp, {low, x_, Scalar(type, bound)});
  }
  // |x| + least.
  Instruction* Above(double least) {
    return Op(Opcode::kAdd, {Op(Opcode::kAbs, {x_}), Full(x_->shape(), least)});
  }

  Instruction* x_;
  bool exact_;
};

}  // namespace

RandomOp RandomFunction(const RandomSource& source, Instruction* x, bool exact) {
  return Generator(source, x, exact).Function();
}

}  // namespace kiln::testing
