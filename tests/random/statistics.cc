#include "random/statistics.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x) : RandomMaker(source), x_(x) {}

  RandomOp BatchNorm() {
    const Shape& shape = x_->shape();
    if (!IsFloat(shape.type()) || shape.rank() == 0 || shape.num_elements() == 0) return {};
    const int64_t feature = Pick(0, shape.rank() - 1);
    features_ = Shape(shape.type(), {shape.dim(feature)});
    // So large that the root of it and the variance is not steep.
    Attributes attributes = {{Attr::kEpsilon, 0.25 * static_cast<double>(Pick(1, 4))},
                             {Attr::kFeatureIndex, feature}};
    RandomOp op{.data = {x_}, .rounds = true};
    switch (Pick(0, 2)) {
      case 0: {
        Instruction *scale = Vector(), *offset = Vector(), *mean = Vector();
        op.results = {Add({.opcode = Opcode::kBatchNormInference,
                           .operands = {x_, scale, offset, mean, Variance()},
                           .attributes = attributes})};
        return op;
      }
      case 1: {
        Instruction *scale = Vector(), *offset = Vector();
        Instruction* all = Add({.opcode = Opcode::kBatchNormTraining,
                                .operands = {x_, scale, offset},
                                .attributes = attributes});
        for (int64_t k = 0; k < 3; ++k) op.results.push_back(Element(all, k));
        return op;
      }
      default: {
        Instruction *scale = Vector(), *mean = Vector(), *variance = Variance();
        Instruction* all = Add({.opcode = Opcode::kBatchNormGrad,
                                .operands = {x_, scale, mean, variance, Parameter(shape)},
                                .attributes = attributes});
        for (int64_t k = 0; k < 3; ++k) op.results.push_back(Element(all, k));
        return op;
      }
    }
  }

 private:
  Instruction* Vector() { return Parameter(features_); }
  Instruction* Variance() { return Add({.opcode = Opcode::kAbs, .operands = {Vector()}}); }

  Instruction* x_;
  Shape features_;
};

}  // namespace

RandomOp RandomBatchNorm(const RandomSource& source, Instruction* x) {
  return Generator(source, x).BatchNorm();
}

}  // namespace kiln::testing
