#include "ir/batch_norm.h"

namespace kiln::ir {
namespace {

// One op's operands in the type of computation, and the values shared by all three ops.
class Features {
 public:
  Features(Builder& b, Instruction* i)
      : b_(b),
        index_(i->attributes().Int(Attr::kFeatureIndex)),
        epsilon_(i->attributes().Float(Attr::kEpsilon)),
        type_(i->operand(0)->shape().type()) {
    const ElementType wide = IsHalf(type_) ? ElementType::kF32 : WideOf(type_);
    for (Instruction* operand : i->operands()) operands_.push_back(b.Convert(operand, wide));
    const Shape& shape = operands_[0]->shape();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == index_) continue;
      others_.push_back(d);
      if (shape.dimension(d).is_constant()) {
        count_ *= static_cast<double>(shape.dim(d));
      } else {
        unknown_.push_back(d);
      }
    }
  }

  Instruction* operand(size_t k) const { return operands_[k]; }

  // A number for each feature, in all of its places.
  Instruction* Spread(Instruction* x) { return b_.BroadcastLike(operands_[0], x, {index_}); }
  // The number of a feature's elements, for each feature as in x.
  Instruction* Count(Instruction* x) {
    Instruction* count = b_.BroadcastLike(x, b_.Scalar(x->shape().type(), count_), {});
    for (int64_t d : unknown_) {
      Instruction* size =
          b_.Add(Opcode::kGetDimensionSize, {operands_[0]}, {{Attr::kDimensions, Ints{d}}});
      size = b_.Convert(size, x->shape().type());
      count = b_.Times(count, b_.BroadcastLike(x, size, {}));
    }
    return count;
  }
  // Over all but the features.
  Instruction* Sum(Instruction* x) { return b_.Sum(x, others_); }
  Instruction* Mean(Instruction* x) {
    Instruction* sum = Sum(x);
    return b_.Over(sum, Count(sum));
  }
  // x + epsilon
  Instruction* PlusEpsilon(Instruction* x) {
    return b_.Plus(x, b_.BroadcastLike(x, b_.Scalar(x->shape().type(), epsilon_), {}));
  }
  // (x - mean) / sqrt(variance + epsilon) * scale + offset
  Instruction* Normal(Instruction* mean, Instruction* variance, Instruction* scale,
                      Instruction* offset) {
    Instruction* factor = b_.Over(scale, b_.Unary(Opcode::kSqrt, PlusEpsilon(variance)));
    Instruction* centred = b_.Minus(operands_[0], Spread(mean));
    return b_.Plus(b_.Times(centred, Spread(factor)), Spread(offset));
  }
  Instruction* Round(Instruction* x) { return b_.Convert(x, type_); }

 private:
  Builder& b_;
  int64_t index_;
  double epsilon_;
  ElementType type_;
  std::vector<Instruction*> operands_;
  Ints others_, unknown_;  // dimensions without features, and those of them without a known size
  double count_ = 1;       // of elements along the others
};

// mean = sum(x) / n, variance = sum((x - mean)^2) / n
Instruction* Training(Builder& b, Instruction* i) {
  Features f(b, i);
  Instruction* mean = f.Mean(f.operand(0));
  Instruction* centred = b.Minus(f.operand(0), f.Spread(mean));
  Instruction* variance = f.Mean(b.Times(centred, centred));
  Instruction* normal = f.Normal(mean, variance, f.operand(1), f.operand(2));
  return b.Tuple({f.Round(normal), f.Round(mean), f.Round(variance)});
}

Instruction* Inference(Builder& b, Instruction* i) {
  Features f(b, i);
  return f.Round(f.Normal(f.operand(3), f.operand(4), f.operand(1), f.operand(2)));
}

// With c = x - mean, v = variance + epsilon, and the gradient g:
//   grad_offset = sum(g), grad_scale = sum(g c) / sqrt(v)
//   grad_operand = scale / sqrt(v) / n * (n g - sum(g) - c sum(g c) / v)
Instruction* Gradient(Builder& b, Instruction* i) {
  Features f(b, i);
  Instruction *scale = f.operand(1), *gradient = f.operand(4);
  Instruction* centred = b.Minus(f.operand(0), f.Spread(f.operand(2)));
  Instruction* variance = f.PlusEpsilon(f.operand(3));
  Instruction* deviation = b.Unary(Opcode::kSqrt, variance);
  Instruction* sum = f.Sum(gradient);
  Instruction* product = f.Sum(b.Times(gradient, centred));
  Instruction* count = f.Count(scale);
  Instruction* factor = b.Over(b.Over(scale, deviation), count);
  Instruction* inner = b.Minus(b.Minus(b.Times(gradient, f.Spread(count)), f.Spread(sum)),
                               b.Times(centred, f.Spread(b.Over(product, variance))));
  return b.Tuple({f.Round(b.Times(inner, f.Spread(factor))), f.Round(b.Over(product, deviation)),
                  f.Round(sum)});
}

}  // namespace

Instruction* BatchNorm(Builder& b, Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kBatchNormTraining:
      return Training(b, i);
    case Opcode::kBatchNormInference:
      return Inference(b, i);
    default:
      return Gradient(b, i);
  }
}

}  // namespace kiln::ir
