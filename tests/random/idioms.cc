#include "random/idioms.h"

#include <algorithm>

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

class Idioms : public RandomMaker {
 public:
  Idioms(const RandomSource& source, Instruction* x, bool exact)
      : RandomMaker(source), x_(x), exact_(exact) {}

  std::vector<Instruction*> Run() {
    if (x_->shape().num_elements() == 0) return {};
    switch (Pick(0, 12)) {
      case 0:
        return Roots();
      case 1:
        return Monotone();
      case 2:
        return Compares();
      case 3:
        return Narrow();
      case 4:
        return Updates();
      case 5:
        return Slices();
      case 6:
        return Moves();
      case 7:
        return Products();
      case 8:
        return Repeated();
      case 9:
        return Biased();
      case 10:
        return Cumulative();
      case 11:
        return Pairs();
      default:
        return Sums();
    }
  }

 private:
  int64_t rank() const { return x_->shape().rank(); }
  ElementType type() const { return x_->shape().type(); }

  Instruction* Spread(const Shape& shape, double value) {
    return shape.rank() == 0 ? Scalar(shape.type(), value) : Full(shape, value);
  }
  Instruction* Convert(Instruction* x, ElementType to) {
    Shape shape = x->shape();
    shape.set_type(to);
    return Add({.opcode = Opcode::kConvert, .operands = {x}, .shape = shape});
  }
  Instruction* Reshape(Instruction* x, std::vector<int64_t> dims) {
    return Add({.opcode = Opcode::kReshape, .operands = {x}, .shape = Shape(type(), dims)});
  }
  Instruction* Transpose(Instruction* x) {
    Ints permutation;
    for (int64_t d = 0; d < x->shape().rank(); ++d) permutation.push_back(d);
    std::shuffle(permutation.begin(), permutation.end(), source_.random);
    return Add({.opcode = Opcode::kTranspose,
                .operands = {x},
                .attributes = {{Attr::kDimensions, permutation}}});
  }
  Instruction* Slice(Instruction* x) {
    std::vector<SliceDimension> slices;
    for (int64_t size : x->shape().dims()) {
      int64_t start = Chance(40) ? Pick(0, size - 1) : 0;
      int64_t limit = Chance(40) ? Pick(start + 1, size) : size;
      slices.push_back({start, limit, Chance(80) ? 1 : 2});
    }
    return Add({.opcode = Opcode::kSlice, .operands = {x}, .attributes = {{Attr::kSlice, slices}}});
  }
  Instruction* Sum(Instruction* x) {
    Computation* c = source_.module.AddComputation("sum");
    std::vector<Instruction*> p;
    for (int64_t n : {0, 1}) {
      p.push_back(AddTo(*c, {.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, n}},
                             .shape = Shape::Scalar(x->shape().type())}));
    }
    c->set_root(AddTo(*c, {.opcode = Opcode::kAdd, .operands = p}));
    Ints dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Chance(50)) dims.push_back(d);
    }
    return Add({.opcode = Opcode::kReduce,
                .operands = {x, Scalar(x->shape().type(), 0)},
                .attributes = {{Attr::kDimensions, dims}},
                .called = {c}});
  }

  std::vector<Instruction*> Roots() {
    if (!IsFloat(type()) || exact_) return {};
    Instruction* x = Chance(60) ? Op(Opcode::kAbs, {x_}) : x_;
    Instruction* root = Op(Chance(50) ? Opcode::kSqrt : Opcode::kRsqrt, {x});
    if (Chance(30)) return {Op(Opcode::kLog, {root})};
    if (Chance(50)) return {Op(Opcode::kMultiply, {root, root})};
    return {Op(Opcode::kDivide, {x_, root})};
  }

  std::vector<Instruction*> Monotone() {
    if (!IsFloat(type()) || exact_) return {};
    constexpr Opcode kFunctions[] = {Opcode::kCbrt, Opcode::kExponential, Opcode::kLogistic,
                                     Opcode::kTanh};
    Opcode f = kFunctions[Pick(0, 3)];
    Instruction* y = Parameter(x_->shape());
    return {Op(Chance(50) ? Opcode::kMaximum : Opcode::kMinimum, {Op(f, {x_}), Op(f, {y})})};
  }

  std::vector<Instruction*> Compares() {
    auto direction = static_cast<Direction>(Pick(0, 5));
    auto compare = [&](Instruction* a, Instruction* b) {
      return Add({.opcode = Opcode::kCompare,
                  .operands = {a, b},
                  .attributes = {{Attr::kDirection, direction}}});
    };
    if (IsPred(type())) return {};
    if (Chance(50)) {
      auto bound = [&] { return Spread(x_->shape(), static_cast<double>(Pick(0, 3))); };
      Instruction *p = compare(x_, bound()), *q = compare(x_, bound());
      return {Op(Chance(50) ? Opcode::kAnd : Opcode::kOr, {p, q})};
    }
    Instruction* y = Parameter(x_->shape());
    Opcode extremum = Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
    Instruction* inner = Op(extremum, {x_, y});
    if (Chance(40)) {
      Instruction *low = Spread(x_->shape(), 1), *high = Spread(x_->shape(), 3);
      Instruction* clamp = Op(Opcode::kClamp, {low, x_, high});
      return {Op(extremum, {clamp, Chance(50) ? low : high})};
    }
    return {Chance(50) ? compare(inner, x_) : compare(x_, inner)};
  }

  std::vector<Instruction*> Narrow() {
    if (IsPred(type())) {
      Instruction* number = Convert(x_, ElementType::kS32);
      return {Op(Opcode::kMultiply, {number, Parameter(number->shape())})};
    }
    if (!IsInteger(type())) return {};
    ElementType wide = Chance(50) ? ElementType::kS32 : ElementType::kU64;
    constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kXor,
                               Opcode::kNegate};
    Opcode op = kOps[Pick(0, 4)];
    std::vector<Instruction*> operands = {Convert(x_, wide)};
    if (op != Opcode::kNegate) operands.push_back(Convert(Parameter(x_->shape()), wide));
    return {Convert(Op(op, operands), type())};
  }

  // A slice of x that begins at values.
  Instruction* DynamicSlice(Instruction* x) {
    std::vector<int64_t> dims;
    std::vector<Instruction*> operands = {x};
    for (int64_t size : x->shape().dims()) {
      dims.push_back(Chance(40) ? size : Pick(1, size));
      operands.push_back(Chance(20) ? Scalar(ElementType::kS32, static_cast<double>(Pick(-1, 4)))
                                    : Parameter(Shape::Scalar(ElementType::kS32)));
    }
    return Add({.opcode = Opcode::kDynamicSlice,
                .operands = operands,
                .attributes = {{Attr::kDynamicSliceSizes, Ints(dims)}},
                .shape = Shape(x->shape().type(), dims)});
  }

  std::vector<Instruction*> Updates() {
    if (rank() == 0) return {};
    bool is_sum = Chance(50) && !IsPred(type());
    Instruction* whole = is_sum ? Spread(x_->shape(), IsInteger(type()) ? 0.0 : -0.0) : x_;
    std::vector<int64_t> dims;
    std::vector<Instruction*> operands = {whole, nullptr};
    for (int64_t size : x_->shape().dims()) {
      dims.push_back(Chance(30) ? size : Pick(1, std::max<int64_t>(1, size / 2)));
      operands.push_back(Parameter(Shape::Scalar(ElementType::kS32)));
    }
    operands[1] = Parameter(Shape(type(), dims));
    Instruction* update = Op(Opcode::kDynamicUpdateSlice, operands);
    if (is_sum) return {Op(Opcode::kAdd, {x_, update})};
    Shape pred = Chance(50) ? Shape::Scalar(ElementType::kPred) : x_->shape();
    pred.set_type(ElementType::kPred);
    std::vector<Instruction*> values = {x_, update};
    if (Chance(50)) std::swap(values[0], values[1]);
    return {Op(Opcode::kSelect, {Parameter(pred), values[0], values[1]})};
  }

  std::vector<Instruction*> Slices() {
    if (rank() == 0) return {};
    Instruction* x = x_;
    for (int64_t n = Pick(1, 3); n > 0; --n) {
      switch (Pick(0, 3)) {
        case 0:
          x = Slice(x);
          break;
        case 1:
          x = Transpose(x);
          break;
        case 2: {
          std::vector<int64_t> dims = x->shape().dims();
          if (static_cast<int>(dims.size()) < source_.max_rank) {
            dims.insert(dims.begin() + Pick(0, static_cast<int64_t>(dims.size())), 1);
          }
          x = Reshape(x, std::move(dims));
          break;
        }
        default:
          x = DynamicSlice(x);
          break;
      }
    }
    x = DynamicSlice(x);
    return {Chance(30) ? Slice(x) : x};
  }

  // Dimensions that are split and merged, with moves between.
  std::vector<Instruction*> Moves() {
    Instruction* x = x_;
    for (int64_t n = Pick(2, 5); n > 0; --n) {
      std::vector<int64_t> dims = x->shape().dims();
      const int64_t count = static_cast<int64_t>(dims.size());
      int64_t d = count > 0 ? Pick(0, count - 1) : 0;
      if (Chance(40)) {
        x = Transpose(x);
      } else if (count >= 2 && Chance(60)) {
        d = std::min(d, count - 2);
        dims[static_cast<size_t>(d)] *= dims[static_cast<size_t>(d) + 1];
        dims.erase(dims.begin() + d + 1);
        x = Reshape(x, std::move(dims));
      } else if (count > 0 && count < source_.max_rank) {
        int64_t& size = dims[static_cast<size_t>(d)];
        int64_t part = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 1;
        size /= part;
        dims.insert(dims.begin() + d, part);
        x = Reshape(x, std::move(dims));
      }
    }
    return {Chance(30) && rank() > 0 ? Slice(x) : x};
  }

  std::vector<Instruction*> Products() {
    if (rank() == 0 || IsPred(type()) || (exact_ && IsFloat(type()))) return {};
    // Batches first, then what is summed over; the other side has one dimension more.
    int64_t batches = Pick(0, rank() - 1);
    Ints batch, contracting;
    std::vector<int64_t> dims = x_->shape().dims();
    for (int64_t d = 0; d < rank(); ++d) {
      if (d < batches) batch.push_back(d);
      if (d == batches) contracting.push_back(d);
    }
    dims.resize(static_cast<size_t>(batches) + 1);
    dims.push_back(Pick(1, 4));
    Instruction *x = x_, *y = nullptr;
    if (Chance(30)) {
      y = Spread(Shape(type(), dims), 2);
      int64_t d = batches;
      x = Add({.opcode = Opcode::kConcatenate,
               .operands = {x_, x_},
               .attributes = {{Attr::kDimensions, Ints{d}}}});
      dims[static_cast<size_t>(d)] *= 2;
      Shape shape(type(), dims);
      Literal numbers(shape);
      for (int64_t k = 0; k < shape.num_elements(); ++k) {
        VisitKernelType(type(), [&](auto zero) {
          using T = decltype(zero);
          numbers.values<T>()[static_cast<size_t>(k)] = static_cast<T>(Pick(0, 3));
        });
      }
      y = Add({.opcode = Opcode::kConstant,
               .shape = shape,
               .literal = std::make_shared<const Literal>(std::move(numbers))});
    } else {
      y = Parameter(Shape(type(), dims));
    }
    Instruction* dot = Add({.opcode = Opcode::kDot,
                            .operands = {x, y},
                            .attributes = {{Attr::kLhsBatchDims, batch},
                                           {Attr::kRhsBatchDims, batch},
                                           {Attr::kLhsContractingDims, contracting},
                                           {Attr::kRhsContractingDims, contracting}},
                            .shape = Shape::Scalar(type())});
    if (Chance(40)) return {Slice(dot)};
    return {Chance(60) ? Sum(dot) : dot};
  }

  // A broadcast and what is done with it.
  std::vector<Instruction*> Repeated() {
    std::vector<int64_t> dims;
    Ints places;
    int64_t elements = x_->shape().num_elements();
    for (int64_t d = 0; d <= rank(); ++d) {
      if (elements <= source_.max_elements / 6 && Chance(60)) {
        dims.push_back(Pick(1, 6));
        elements *= dims.back();
      }
      if (d == rank()) break;
      places.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(x_->shape().dim(d));
    }
    Instruction* wide = Add({.opcode = Opcode::kBroadcast,
                             .operands = {x_},
                             .attributes = {{Attr::kDimensions, places}},
                             .shape = Shape(type(), dims)});
    if (Chance(40) && !(exact_ && IsFloat(type())) && !IsPred(type())) return {Sum(wide)};
    if (Chance(50)) {
      std::vector<PaddingDimension> padding(dims.size());
      for (PaddingDimension& p : padding) {
        if (Chance(30)) p = {Pick(0, 1), Pick(0, 1), Pick(0, 1)};
      }
      Instruction* pad = Add({.opcode = Opcode::kPad,
                              .operands = {wide, Scalar(type(), static_cast<double>(Pick(0, 1)))},
                              .attributes = {{Attr::kPadding, padding}}});
      if (!IsPred(type()) && Chance(50)) pad = Op(Opcode::kAdd, {pad, Spread(pad->shape(), 2)});
      return {pad->shape().rank() > 0 && Chance(50) ? Slice(pad) : pad};
    }
    if (dims.size() < 2) return {wide};
    size_t d = static_cast<size_t>(Pick(0, static_cast<int64_t>(dims.size()) - 2));
    dims[d] *= dims[d + 1];
    dims.erase(dims.begin() + static_cast<int64_t>(d) + 1);
    return {Reshape(wide, std::move(dims))};
  }

  // What is added to something that is moved: a vector along one dimension.
  std::vector<Instruction*> Biased() {
    if (rank() == 0 || IsPred(type())) return {};
    Instruction* moved = x_;
    if (Chance(50)) {
      moved = Transpose(x_);
    } else {
      std::vector<int64_t> dims = x_->shape().dims();
      if (dims.size() < 2) return {};
      dims[0] *= dims[1];
      dims.erase(dims.begin() + 1);
      moved = Reshape(x_, std::move(dims));
    }
    int64_t d = Pick(0, moved->shape().rank() - 1);
    Instruction* bias = Add({.opcode = Opcode::kBroadcast,
                             .operands = {Parameter(Shape(type(), {moved->shape().dim(d)}))},
                             .attributes = {{Attr::kDimensions, Ints{d}}},
                             .shape = moved->shape()});
    if (Chance(25)) {
      Instruction* y = Transpose(x_);
      return {Add({.opcode = Opcode::kConcatenate,
                   .operands = {y, Add({.opcode = Opcode::kTranspose,
                                        .operands = {Parameter(x_->shape())},
                                        .attributes = {{Attr::kDimensions, y->dimensions()}}})},
                   .attributes = {{Attr::kDimensions, Ints{Pick(0, rank() - 1)}}}})};
    }
    return {Op(Opcode::kMaximum, {moved, bias})};
  }

  // Two arrays folded at once, or behind one barrier, of which one is often not read.
  std::vector<Instruction*> Pairs() {
    Instruction *y = Parameter(x_->shape()), *pair = nullptr;
    if (Chance(70)) {
      Computation* c = source_.module.AddComputation("pair");
      std::vector<Instruction*> p;
      for (int64_t n : {0, 1, 2, 3}) {
        p.push_back(AddTo(*c, {.opcode = Opcode::kParameter,
                               .attributes = {{Attr::kParameterNumber, n}},
                               .shape = Shape::Scalar(type())}));
      }
      Instruction* a = AddTo(*c, {.opcode = Opcode::kMaximum, .operands = {p[0], p[2]}});
      Instruction* b =
          AddTo(*c, {.opcode = Opcode::kMinimum, .operands = {p[1], Chance(30) ? p[2] : p[3]}});
      c->set_root(AddTo(*c, {.opcode = Opcode::kTuple, .operands = {a, b}}));
      Ints dims;
      for (int64_t d = 0; d < rank(); ++d) {
        if (Chance(50)) dims.push_back(d);
      }
      pair = Add({.opcode = Opcode::kReduce,
                  .operands = {x_, y, Scalar(type(), 0), Scalar(type(), 1)},
                  .attributes = {{Attr::kDimensions, dims}},
                  .called = {c}});
    } else {
      pair = Op(Opcode::kOptBarrier, {Op(Opcode::kTuple, {x_, y})});
    }
    std::vector<Instruction*> results;
    for (int64_t k : {0, 1}) {
      if (Chance(30) && !(k == 1 && results.empty())) continue;
      results.push_back(Add({.opcode = Opcode::kGetTupleElement,
                             .operands = {pair},
                             .attributes = {{Attr::kIndex, k}}}));
    }
    return results;
  }

  std::vector<Instruction*> Cumulative() {
    if (rank() == 0 || IsPred(type()) || (exact_ && IsFloat(type()))) return {};
    Instruction* x = Chance(70) ? Spread(x_->shape(), static_cast<double>(Pick(0, 9))) : x_;
    std::vector<WindowDimension> window(static_cast<size_t>(rank()));
    if (Chance(60)) {
      int64_t d = Pick(0, rank() - 1);
      WindowDimension& w = window[static_cast<size_t>(d)];
      w.size = x->shape().dim(d);
      (Chance(50) ? w.low : w.high) = w.size - 1;
    } else {
      for (WindowDimension& w : window) w.low = Pick(0, 1);
    }
    Computation* c = source_.module.AddComputation("sum");
    std::vector<Instruction*> p;
    for (int64_t n : {0, 1}) {
      p.push_back(AddTo(*c, {.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, n}},
                             .shape = Shape::Scalar(type())}));
    }
    c->set_root(AddTo(*c, {.opcode = Opcode::kAdd, .operands = p}));
    return {Add({.opcode = Opcode::kReduceWindow,
                 .operands = {x, Scalar(type(), 0)},
                 .attributes = {{Attr::kWindow, window}},
                 .called = {c}})};
  }

  std::vector<Instruction*> Sums() {
    if (!IsInteger(type())) return {};
    Instruction *c = Spread(x_->shape(), static_cast<double>(Pick(0, 9))),
                *d = Spread(x_->shape(), static_cast<double>(Pick(1, 5)));
    switch (Pick(0, 3)) {
      case 0:
        return {Op(Opcode::kAdd, {Op(Opcode::kSubtract, {c, x_}), d})};
      case 1: {
        Instruction* y = Parameter(x_->shape());
        Opcode op = Chance(50) ? Opcode::kMultiply : Opcode::kXor;
        return {Op(op, {Op(op, {x_, c}), Op(op, {y, d})})};
      }
      case 2: {
        if (rank() == 0) return {};
        Instruction* iota = Add({.opcode = Opcode::kIota,
                                 .attributes = {{Attr::kIotaDimension, Pick(0, rank() - 1)}},
                                 .shape = x_->shape()});
        Instruction* sum = Op(Opcode::kAdd, {iota, Spread(x_->shape(), 6)});
        return {
            Op(Opcode::kRemainder, {sum, Spread(x_->shape(), static_cast<double>(Pick(1, 3)))})};
      }
      default:
        return {Sum(Op(Opcode::kNegate, {x_}))};
    }
  }

  Instruction* x_;
  const bool exact_;
};

}  // namespace

std::vector<Instruction*> RandomIdiom(const RandomSource& source, Instruction* x, bool exact) {
  return Idioms(source, x, exact).Run();
}

}  // namespace kiln::testing
