#include "random_functions.h"

#include <iterator>

#include "random_ops.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x, bool exact)
      : RandomMaker(source), x_(x), exact_(exact) {}

  RandomOp Function() {
    int n = Pick(0, std::size(kBoundedFunctions) + 9);
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
        return {{Op(Opcode::kNextAfter, {x_, Clamped(1)})}, {x_}};
      case 5:
        return Rounded(Op(Opcode::kLgamma, {Above(0.5)}));
      case 6:
        return Rounded(Op(Opcode::kDigamma, {Above(1)}));
      case 7:
        return Rounded(Op(Opcode::kZeta, {Full(x_->shape(), 3), Above(1)}));
      case 8:
        return Rounded(Op(Opcode::kPolygamma, {Full(x_->shape(), 2), Above(1)}));
      default:
        return {{Op(Opcode::kImag, {x_})}, {}};
    }
  }

 private:
  RandomOp Rounded(Instruction* result) { return {{result}, {x_}, /*rounds=*/true}; }

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
