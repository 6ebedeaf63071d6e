#include "random/products.h"

#include <algorithm>

#include "random/ops.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

class Products : public RandomMaker {
 public:
  explicit Products(const RandomSource& source) : RandomMaker(source) {}

  // x becomes [batch, m, k], the other operand is [batch, k, n], or either of them across.
  std::vector<Instruction*> Run(Instruction* x) {
    const Shape& shape = x->shape();
    if (shape.rank() == 0 || shape.num_elements() == 0 || IsPred(shape.type())) return {};
    type_ = shape.type();
    int64_t elements = shape.num_elements();
    k_ = Divisor(elements);
    batch_ = Chance(50) ? Divisor(elements / k_) : 1;
    m_ = elements / k_ / batch_;
    const int64_t most = source_.max_elements / std::max<int64_t>(batch_ * std::max(m_, k_), 1);
    if (most < 1) return {};
    n_ = std::min<int64_t>(most, Pick(Chance(90) ? 2 : 1, Chance(30) ? 40 : 9));
    const bool left_across = Chance(30), right_across = Chance(40);
    Instruction* left = Operand(Reshape(x, Matrix(m_, k_, left_across)), left_across ? 1 : 2);
    Instruction* right = Right(right_across);
    ElementType to = type_;
    if (Chance(30)) to = WiderSum(type_);
    Instruction* dot = Add({.opcode = Opcode::kDot,
                            .operands = {left, right},
                            .attributes = {{Attr::kLhsBatchDims, Ints{0}},
                                           {Attr::kRhsBatchDims, Ints{0}},
                                           {Attr::kLhsContractingDims, Ints{left_across ? 1 : 2}},
                                           {Attr::kRhsContractingDims, Ints{right_across ? 2 : 1}}},
                            .shape = Shape::Scalar(to)});
    type_ = to;
    // What is a step off is bounded by nothing after sums, and complex numbers have no order.
    if (IsNarrowFloat(to) || IsComplex(to)) return {Chance(50) ? Turned(dot) : dot};
    if (IsFloat(to) && (IsHalf(to) || Chance(50))) dot = Bounded(dot);
    switch (Pick(0, 3)) {
      case 0:
        return {Turned(dot)};
      case 1:
        return {dot};
      default:
        return Rows(dot);
    }
  }

 private:
  Instruction* Broadcast(Instruction* x, std::vector<int64_t> dims, Ints places) {
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {x},
                .attributes = {{Attr::kDimensions, std::move(places)}},
                .shape = Shape(type_, dims)});
  }
  Instruction* Reshape(Instruction* x, std::vector<int64_t> dims) {
    return Add({.opcode = Opcode::kReshape, .operands = {x}, .shape = Shape(type_, dims)});
  }
  std::vector<int64_t> Matrix(int64_t rows, int64_t columns, bool across) const {
    if (across) std::swap(rows, columns);
    return {batch_, rows, columns};
  }

  // Scaled by a number for each point of one of its dimensions.
  Instruction* Operand(Instruction* x, int64_t contracted) {
    if (!Chance(30)) return x;
    std::vector<int64_t> dims = x->shape().dims();
    Ints places;
    std::vector<int64_t> scaled;
    for (int64_t d = 0; d < 3; ++d) {
      bool has = d == 0 ? Chance(30) : Chance(60) == (d == contracted);
      if (!has) continue;
      places.push_back(d);
      scaled.push_back(dims[static_cast<size_t>(d)]);
    }
    return Op(Opcode::kMultiply, {x, Broadcast(Parameter(Shape(type_, scaled)), dims, places)});
  }

  // A parameter, or what is cut out of one, converted perhaps.
  Instruction* Right(bool across) {
    std::vector<int64_t> dims = Matrix(k_, n_, across), whole = dims;
    std::vector<SliceDimension> slices;
    const bool cut = Chance(40);
    for (int64_t& size : whole) {
      int64_t before = cut && Chance(40) ? Pick(1, 3) : 0,
              after = cut && Chance(30) ? Pick(1, 3) : 0;
      slices.push_back({before, before + size, 1});
      size += before + after;
    }
    ElementType memory = type_;
    if (Chance(20) && IsFloat(type_)) {
      // Differences of narrow floats say nothing of a derivative.
      memory = Chance(50) || source_.smooth ? ElementType::kS8 : ElementType::kBF16;
    }
    Instruction* x = Parameter(Shape(memory, whole));
    if (cut)
      x = Add({.opcode = Opcode::kSlice, .operands = {x}, .attributes = {{Attr::kSlice, slices}}});
    if (memory != type_) {
      x = Add({.opcode = Opcode::kConvert, .operands = {x}, .shape = Shape(type_, dims)});
    }
    return Operand(x, across ? 2 : 1);
  }

  Instruction* Bounded(Instruction* x) {
    Instruction *low = Scalar(type_, -2), *high = Scalar(type_, 2);
    return Op(Opcode::kClamp, {low, x, high});
  }

  // As the heads of an attention are put together: [batch, m, n] => [m, batch * n], or otherwise.
  Instruction* Turned(Instruction* x) {
    Ints permutation = {0, 1, 2};
    std::shuffle(permutation.begin(), permutation.end(), source_.random);
    Instruction* turned = Add({.opcode = Opcode::kTranspose,
                               .operands = {x},
                               .attributes = {{Attr::kDimensions, permutation}}});
    std::vector<int64_t> dims = turned->shape().dims();
    if (Chance(50)) return Reshape(turned, {dims[0], dims[1] * dims[2]});
    return turned;
  }

  Instruction* Reduce(Instruction* x, Opcode opcode, const Ints& dims) {
    Computation* c = source_.module.AddComputation("fold");
    std::vector<Instruction*> p;
    for (int64_t n : {0, 1}) {
      p.push_back(AddTo(*c, {.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, n}},
                             .shape = Shape::Scalar(type_)}));
    }
    c->set_root(AddTo(*c, {.opcode = opcode, .operands = p}));
    return Add({.opcode = Opcode::kReduce,
                .operands = {x, Scalar(type_, 0)},
                .attributes = {{Attr::kDimensions, dims}},
                .called = {c}});
  }

  // Sums and extrema of the rows, what is made of them, and the rows again with that.
  std::vector<Instruction*> Rows(Instruction* dot) {
    std::vector<int64_t> dims = dot->shape().dims();
    Instruction* x = dot;
    if (Chance(40)) x = Op(Opcode::kAdd, {x, Parameter(Shape(type_, dims))});
    const Ints all = Chance(15) ? Ints{0, 1, 2} : Ints{2};
    Instruction* top = Reduce(x, Chance(50) ? Opcode::kMaximum : Opcode::kAdd, all);
    std::vector<Instruction*> results;
    if (Chance(20)) results.push_back(dot);
    if (Chance(30)) {
      results.push_back(top);
      return results;
    }
    Instruction* spread = Broadcast(top, dims, all.size() == 1 ? Ints{0, 1} : Ints{});
    x = Op(Opcode::kSubtract, {x, spread});
    if (Chance(30) && !IsHalf(type_)) {
      results.push_back(Reduce(Op(Opcode::kMultiply, {x, x}), Opcode::kAdd, {2}));
    }
    results.push_back(x);
    return results;
  }

  ElementType type_ = ElementType::kInvalid;
  int64_t batch_ = 1, m_ = 1, n_ = 1, k_ = 1;
};

}  // namespace

std::vector<Instruction*> RandomProduct(const RandomSource& source, Instruction* x) {
  return Products(source).Run(x);
}

}  // namespace kiln::testing
