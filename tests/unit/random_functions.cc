#include "random_functions.h"

#include <cstdlib>
#include <iostream>
#include <iterator>

#include "random_ops.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator {
 public:
  Generator(const MoveSource& source, Instruction* x, bool exact)
      : source_(source), x_(x), exact_(exact) {}

  MoveOp Function() {
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
        return Rounded(Op(Opcode::kZeta, {Full(3), Above(1)}));
      case 8:
        return Rounded(Op(Opcode::kPolygamma, {Full(2), Above(1)}));
      default:
        return {{Op(Opcode::kImag, {x_})}, {}};
    }
  }

 private:
  MoveOp Rounded(Instruction* result) { return {{result}, {x_}, /*rounds=*/true}; }
  int Pick(int low, int high) { return std::uniform_int_distribution(low, high)(source_.random); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }

  // A generator that makes invalid ops is broken itself.
  Instruction* Add(ir::InstructionSpec spec) {
    auto made = source_.computation.Add(std::move(spec));
    if (!made.ok()) {
      std::cerr << "random functions: " << made.status().ToString() << "\n";
      std::abort();
    }
    return *made;
  }
  Instruction* Op(Opcode opcode, std::vector<Instruction*> operands) {
    return Add({.opcode = opcode, .operands = std::move(operands)});
  }
  Instruction* Scalar(double value) {
    ElementType type = x_->shape().type();
    return Add({.opcode = Opcode::kConstant,
                .shape = Shape::Scalar(type),
                .literal = std::make_shared<const Literal>(Literal::ScalarOf(type, value))});
  }
  Instruction* Clamped(double bound) {
    Instruction* low = Scalar(LowerBound(x_->shape().type(), bound));
    return Op(Opcode::kClamp, {low, x_, Scalar(bound)});
  }
  Instruction* Full(double value) {
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {Scalar(value)},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = x_->shape()});
  }
  // |x| + least.
  Instruction* Above(double least) {
    return Op(Opcode::kAdd, {Op(Opcode::kAbs, {x_}), Full(least)});
  }

  const MoveSource& source_;
  Instruction* x_;
  bool exact_;
};

}  // namespace

MoveOp RandomFunction(const MoveSource& source, Instruction* x, bool exact) {
  return Generator(source, x, exact).Function();
}

}  // namespace kiln::testing
