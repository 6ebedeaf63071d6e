#include "random_statistics.h"

#include <cstdlib>
#include <iostream>

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator {
 public:
  Generator(const MoveSource& source, Instruction* x) : source_(source), x_(x) {}

  MoveOp BatchNorm() {
    const Shape& shape = x_->shape();
    if (!IsFloat(shape.type()) || shape.rank() == 0 || shape.num_elements() == 0) return {};
    const int64_t feature = Pick(0, shape.rank() - 1);
    features_ = Shape(shape.type(), {shape.dim(feature)});
    // So large that the root of it and the variance is not steep.
    Attributes attributes = {{Attr::kEpsilon, 0.25 * static_cast<double>(Pick(1, 4))},
                             {Attr::kFeatureIndex, feature}};
    MoveOp op{.data = {x_}, .rounds = true};
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
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(source_.random() % static_cast<uint64_t>(high - low + 1));
  }
  Instruction* Add(ir::InstructionSpec spec) {
    auto made = source_.computation.Add(std::move(spec));
    if (!made.ok()) {
      std::cerr << "random statistics: " << made.status().ToString() << "\n";
      std::abort();
    }
    return *made;
  }
  Instruction* Parameter(const Shape& shape) {
    const auto number = static_cast<int64_t>(source_.computation.parameters().size());
    return Add({.opcode = Opcode::kParameter,
                .attributes = {{Attr::kParameterNumber, number}},
                .shape = Shape(shape.type(), shape.dimensions())});
  }
  Instruction* Vector() { return Parameter(features_); }
  Instruction* Variance() { return Add({.opcode = Opcode::kAbs, .operands = {Vector()}}); }
  Instruction* Element(Instruction* tuple, int64_t k) {
    return Add({.opcode = Opcode::kGetTupleElement,
                .operands = {tuple},
                .attributes = {{Attr::kIndex, k}}});
  }

  const MoveSource& source_;
  Instruction* x_;
  Shape features_;
};

}  // namespace

MoveOp RandomBatchNorm(const MoveSource& source, Instruction* x) {
  return Generator(source, x).BatchNorm();
}

}  // namespace kiln::testing
