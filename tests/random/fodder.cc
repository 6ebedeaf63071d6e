#include "random/fodder.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>

#include "base/strings.h"
#include "random/idioms.h"
#include "random/moves.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr int64_t kMaxElements = 200;

// The elements of a shape, an empty dimension counted as one: what pads may make of it.
int64_t Extent(const Shape& shape) {
  int64_t extent = 1;
  for (int64_t size : shape.dims()) extent *= std::max<int64_t>(size, 1);
  return extent;
}

// One element: small, often special.
template <typename T, typename Random>
T SpecialValue(Random& random) {
  uint64_t bits = random();
  if constexpr (std::same_as<T, bool>) {
    return bits & 1;
  } else {
    using Limits = std::numeric_limits<T>;
    int pick = static_cast<int>(bits % 16);
    if (pick == 0) return T{0};
    if (pick == 1) return T{1};
    if (pick == 2) return Limits::max();
    if (pick == 3) return Limits::lowest();
    if constexpr (FloatType<T>) {
      if (pick == 4) return -T{0};
      if (pick == 5) return Limits::quiet_NaN();
      if (pick == 6) return Limits::infinity();
      if (pick == 7) return -Limits::infinity();
      if (pick == 8) return Limits::denorm_min();
      return static_cast<T>(static_cast<double>(static_cast<int64_t>(bits >> 8) % 4001 - 2000) /
                            256);
    }
    return static_cast<T>(static_cast<int64_t>(bits >> 8) % 19 - 9);
  }
}

class Generator {
 public:
  Generator(uint64_t seed, FodderKind kind)
      : kind_(kind),
        random_(seed * 0x9e3779b97f4a7c15u + 12345),
        module_(std::make_unique<ir::Module>(Cat("fodder_", seed))) {}

  std::unique_ptr<ir::Module> Run(int ops) {
    c_ = module_->AddComputation("main");
    module_->set_entry(c_);
    for (int i = Pick(2, 4); i > 0; --i) Parameter(RandomShape());
    for (int i = 0; i < ops; ++i) Step();
    std::vector<Instruction*> results;
    for (Instruction* v : values_) {
      if (v->opcode() != Opcode::kParameter && (v->users().empty() || Chance(IsExact() ? 15 : 5))) {
        results.push_back(v);
      }
    }
    c_->set_root(Add({.opcode = Opcode::kTuple, .operands = results}));
    module_->SortComputations();
    return std::move(module_);
  }

 private:
  int Pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  template <typename T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Pick(0, static_cast<int>(list.size()) - 1)];
  }

  Shape RandomShape() {
    ElementType type =
        OneOf({ElementType::kF32, ElementType::kF32, ElementType::kF64, ElementType::kF16,
               ElementType::kBF16, ElementType::kS32, ElementType::kS32, ElementType::kS64,
               ElementType::kS8, ElementType::kS16, ElementType::kU8, ElementType::kU16,
               ElementType::kU32, ElementType::kU64, ElementType::kPred});
    std::vector<int64_t> dims;
    for (int d = Pick(0, 3); d > 0; --d) dims.push_back(Chance(4) ? 0 : OneOf({1, 1, 2, 3, 4, 5}));
    return Shape(type, std::span<const int64_t>(dims));
  }

  Instruction* Add(ir::InstructionSpec spec) {
    auto made = c_->Add(std::move(spec));
    if (!made.ok()) {
      std::cerr << "fodder: " << made.status().ToString() << "\n";
      std::abort();
    }
    return *made;
  }
  Instruction* Keep(Instruction* value) {
    values_.push_back(value);
    return value;
  }
  Instruction* Parameter(const Shape& shape) {
    int64_t number = static_cast<int64_t>(c_->parameters().size());
    return Keep(Add({.opcode = Opcode::kParameter,
                     .attributes = {{Attr::kParameterNumber, number}},
                     .shape = shape}));
  }

  Instruction* Any() {
    int n = static_cast<int>(values_.size());
    return values_[Chance(60) ? Pick(std::max(0, n - 4), n - 1) : Pick(0, n - 1)];
  }
  // A value of a kind, or null: a few tries.
  template <typename F>
  Instruction* AnyThat(F&& fits) {
    for (int tries = 0; tries < 12; ++tries) {
      if (Instruction* v = Any(); fits(v)) return v;
    }
    return nullptr;
  }

  Instruction* Constant(ElementType type) {
    Literal l(Shape::Scalar(type));
    VisitKernelType(type, [&](auto zero) {
      using T = decltype(zero);
      T& value = l.values<T>()[0];
      value = SpecialValue<T>(random_);
      if constexpr (!std::same_as<T, bool>) {
        if (Chance(70)) value = static_cast<T>(OneOf({0, 0, 1, 1, 2, 3, 4, 8}));
        if constexpr (std::numeric_limits<T>::is_signed) {
          if (!Chance(30)) return;
          if constexpr (std::integral<T>) {
            value = static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(value));
          } else {
            value = static_cast<T>(-value);
          }
        }
      }
    });
    return Add({.opcode = Opcode::kConstant,
                .shape = l.shape(),
                .literal = std::make_shared<const Literal>(l)});
  }
  Instruction* Spread(const Shape& shape, Instruction* scalar) {
    if (shape.rank() == 0) return scalar;
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {scalar},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = shape});
  }
  // An array that need not repeat one value.
  Instruction* ArrayConstant(const Shape& shape) {
    Literal l(shape);
    bool splat = Chance(30);
    VisitKernelType(shape.type(), [&](auto zero) {
      using T = decltype(zero);
      T first = SpecialValue<T>(random_);
      for (T& value : l.values<T>()) value = splat ? first : SpecialValue<T>(random_);
    });
    return Add({.opcode = Opcode::kConstant,
                .shape = shape,
                .literal = std::make_shared<const Literal>(l)});
  }

  // A second operand for x: x again, what x is made of, a constant, or another value of the shape.
  Instruction* Partner(Instruction* x) {
    auto fits = [&](const Instruction* v) { return v->shape() == x->shape(); };
    int pick = Pick(0, 9);
    if (pick == 0) return x;
    if (pick <= 2) {
      for (Instruction* v : x->operands()) {
        if (fits(v) && Chance(60)) return v;
      }
    }
    if (pick <= 5) {
      if (Instruction* v = AnyThat(fits)) return v;
    }
    if (pick == 6) return ArrayConstant(x->shape());
    if (pick == 7 && x->shape().rank() > 0 && x->shape().num_elements() > 0) {
      // A vector along one dimension.
      int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
      Instruction* v = AnyThat([&](const Instruction* y) {
        return y->shape() == Shape(x->shape().type(), {x->shape().dim(d)});
      });
      if (!v) v = Parameter(Shape(x->shape().type(), {x->shape().dim(d)}));
      return Add({.opcode = Opcode::kBroadcast,
                  .operands = {v},
                  .attributes = {{Attr::kDimensions, Ints{d}}},
                  .shape = x->shape()});
    }
    if (pick == 8) {
      Instruction* s = AnyThat(
          [&](const Instruction* y) { return y->shape() == Shape::Scalar(x->shape().type()); });
      if (s) return Spread(x->shape(), s);
    }
    return Spread(x->shape(), Constant(x->shape().type()));
  }

  void Step() {
    switch (Pick(0, 18)) {
      case 0:
      case 1:
        return StepUnary(Any());
      case 2:
      case 3:
      case 4:
      case 5:
        return StepBinary(Any());
      case 6:
        return StepCompare(Any());
      case 7:
        return StepSelect();
      case 8:
        return StepConvert(Any());
      case 9:
        return StepBroadcast(Any());
      case 10:
        return StepReshape(Any());
      case 11:
        return StepTranspose(Any());
      case 12:
        return Chance(60) ? StepSlice(Any()) : Chance(50) ? StepReverse(Any()) : StepBits(Any());
      case 13:
        return Chance(50) ? StepConcatenate(Any()) : StepPad(Any());
      case 14:
        return StepReduce(Any());
      case 15:
        return Chance(50) ? StepDot(Any()) : Chance(60) ? StepIota() : StepSort(Any());
      case 16:
        return StepSliceOrWindow(Any());
      default:
        return StepIdiom(Any());
    }
  }

  void StepUnary(Instruction* x) {
    ElementType type = x->shape().type();
    Opcode op;
    if (IsPred(type)) {
      op = OneOf({Opcode::kNot, Opcode::kNot, Opcode::kCopy});
    } else if (IsInteger(type)) {
      op = OneOf({Opcode::kNegate, Opcode::kNegate, Opcode::kAbs, Opcode::kNot, Opcode::kSign,
                  Opcode::kPopcnt, Opcode::kCountLeadingZeros, Opcode::kCopy});
    } else {
      op = OneOf({Opcode::kNegate, Opcode::kNegate, Opcode::kAbs, Opcode::kAbs, Opcode::kSign,
                  Opcode::kFloor, Opcode::kCeil, Opcode::kRoundNearestAfz,
                  Opcode::kRoundNearestEven, Opcode::kExponential, Opcode::kSqrt, Opcode::kLogistic,
                  Opcode::kCopy, Opcode::kIsFinite});
    }
    // A root is exact, but not the product of two: what it is the root of may take its place.
    if (IsExact() && IsTranscendental(op)) op = Opcode::kNegate;
    Keep(Add({.opcode = op, .operands = {x}}));
  }
  bool IsExact() const { return kind_ == FodderKind::kExact; }

  void StepBinary(Instruction* x) {
    ElementType type = x->shape().type();
    Instruction* y = Partner(x);
    if (Chance(20)) {
      // Either may be negated or inverted first.
      Opcode inverse = IsPred(type) ? Opcode::kNot : Opcode::kNegate;
      if (IsInteger(type) && Chance(50)) inverse = Opcode::kNot;
      Instruction*& z = Chance(50) ? x : y;
      z = Add({.opcode = inverse, .operands = {z}});
    }
    if (Chance(40)) std::swap(x, y);
    Opcode op;
    if (IsPred(type)) {
      op = OneOf({Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kAdd, Opcode::kMultiply,
                  Opcode::kMaximum, Opcode::kMinimum});
    } else if (IsFloat(type) || Chance(50)) {
      op = OneOf({Opcode::kAdd, Opcode::kAdd, Opcode::kSubtract, Opcode::kSubtract,
                  Opcode::kMultiply, Opcode::kMultiply, Opcode::kDivide, Opcode::kRemainder,
                  Opcode::kPower, Opcode::kMaximum, Opcode::kMinimum});
    } else {
      op = OneOf({Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kMaximum, Opcode::kMinimum,
                  Opcode::kShiftLeft, Opcode::kShiftRightArithmetic, Opcode::kShiftRightLogical,
                  Opcode::kRemainder, Opcode::kDivide});
    }
    if (IsExact() && op == Opcode::kPower && IsFloat(type)) op = Opcode::kMinimum;
    if (op == Opcode::kMultiply && IsFloat(type) && Chance(25)) op = Opcode::kMultiplyNoNan;
    if ((op == Opcode::kDivide || op == Opcode::kRemainder) && IsInteger(type) && Chance(40)) {
      y = Spread(x->shape(), Add({.opcode = Opcode::kConstant,
                                  .shape = Shape::Scalar(type),
                                  .literal = std::make_shared<const Literal>(
                                      Literal::ScalarOf(type, OneOf({2, 4, 8, 64})))}));
    }
    Instruction* r = Keep(Add({.opcode = op, .operands = {x, y}}));
    // Another one of the same op, or of its mirror: association and absorption.
    if (Chance(25)) {
      Instruction* z = Chance(50) ? Partner(r) : OneOf({x, y});
      Keep(Add({.opcode = op, .operands = {Chance(50) ? r : z, Chance(50) ? z : r}}));
    }
  }

  void StepCompare(Instruction* x) {
    auto direction = static_cast<Direction>(Pick(0, 5));
    Instruction* y = Partner(x);
    if (Chance(30)) std::swap(x, y);
    Keep(Add({.opcode = Opcode::kCompare,
              .operands = {x, y},
              .attributes = {{Attr::kDirection, direction}}}));
    if (Chance(40)) {
      Instruction* p = values_.back();
      Keep(Add({.opcode = Opcode::kSelect, .operands = {p, OneOf({x, y}), OneOf({x, y})}}));
    }
  }

  void StepSelect() {
    if (Chance(30)) {
      Instruction* x = Any();
      auto bound = [&] {
        Instruction* scalar = Constant(x->shape().type());
        return Chance(50) ? scalar : Spread(x->shape(), scalar);
      };
      Instruction *low = bound(), *high = Chance(20) ? low : bound();
      Instruction* r = Keep(Add({.opcode = Opcode::kClamp, .operands = {low, x, high}}));
      if (Chance(20)) Keep(Add({.opcode = Opcode::kClamp, .operands = {low, r, high}}));
      return;
    }
    Instruction* p = AnyThat([](const Instruction* v) { return IsPred(v->shape().type()); });
    if (!p) return;
    if (p->shape().is_scalar() && Chance(50)) {
      Instruction* x = Any();
      if (Chance(50)) p = Spread(x->shape(), p);
      Keep(Add({.opcode = Opcode::kSelect, .operands = {p, x, Partner(x)}}));
      return;
    }
    Instruction* x =
        AnyThat([&](const Instruction* v) { return v->shape().SameDimensions(p->shape()); });
    if (!x) x = p;
    if (Chance(20)) p = Add({.opcode = Opcode::kNot, .operands = {p}});
    Keep(Add({.opcode = Opcode::kSelect, .operands = {p, x, Partner(x)}}));
  }

  void StepConvert(Instruction* x) {
    Shape shape = x->shape();
    shape.set_type(OneOf({ElementType::kF32, ElementType::kF64, ElementType::kF16,
                          ElementType::kBF16, ElementType::kS32, ElementType::kS64,
                          ElementType::kS8, ElementType::kS16, ElementType::kU8, ElementType::kU16,
                          ElementType::kU32, ElementType::kU64, ElementType::kPred}));
    Instruction* r = Keep(Add({.opcode = Opcode::kConvert, .operands = {x}, .shape = shape}));
    if (Chance(50)) StepConvert(r);
  }

  void StepBroadcast(Instruction* x) {
    std::vector<int64_t> dims;
    Ints mapping;
    int64_t elements = Extent(x->shape());
    for (int64_t d = 0; d <= x->shape().rank(); ++d) {
      if (dims.size() < 4 && Chance(40) && elements < 60) {
        dims.push_back(OneOf({1, 2, 3}));
        elements *= dims.back();
      }
      if (d == x->shape().rank()) break;
      mapping.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(x->shape().dim(d));
    }
    // Dimensions of the same place in another order.
    if (mapping.size() >= 2 && Chance(25)) {
      std::swap(mapping[0], mapping[1]);
      std::swap(dims[static_cast<size_t>(mapping[0])], dims[static_cast<size_t>(mapping[1])]);
    }
    Keep(Add({.opcode = Opcode::kBroadcast,
              .operands = {x},
              .attributes = {{Attr::kDimensions, mapping}},
              .shape = Shape(x->shape().type(), std::span<const int64_t>(dims))}));
  }

  void StepReshape(Instruction* x) {
    std::vector<int64_t> dims = x->shape().dims();
    int n = static_cast<int>(dims.size());
    auto one = std::find(dims.begin(), dims.end(), 1);
    if (one != dims.end() && Chance(40)) {
      dims.erase(one);
    } else if (n >= 2 && Chance(30)) {
      int d = Pick(0, n - 2);
      dims[static_cast<size_t>(d)] *= dims[static_cast<size_t>(d) + 1];
      dims.erase(dims.begin() + d + 1);
    } else if (n < 4) {
      dims.insert(dims.begin() + Pick(0, n), 1);
    }
    AfterRearrangement(Add({.opcode = Opcode::kReshape,
                            .operands = {x},
                            .shape = Shape(x->shape().type(), std::span<const int64_t>(dims))}));
  }

  // Ops behind what moves elements: it goes behind them.
  void AfterRearrangement(Instruction* r) {
    values_.push_back(r);
    if (Chance(30)) StepUnary(r);
    if (Chance(20)) StepReduce(values_.back());
  }

  void StepTranspose(Instruction* x) {
    Ints permutation;
    for (int64_t d = 0; d < x->shape().rank(); ++d) permutation.push_back(d);
    std::shuffle(permutation.begin(), permutation.end(), random_);
    if (x->shape().rank() > 2 && Chance(40)) {
      std::shuffle(permutation.begin(), permutation.end(), random_);
      x = Add({.opcode = Opcode::kTranspose,
               .operands = {x},
               .attributes = {{Attr::kDimensions, permutation}}});
      std::shuffle(permutation.begin(), permutation.end(), random_);
    }
    AfterRearrangement(Add({.opcode = Opcode::kTranspose,
                            .operands = {x},
                            .attributes = {{Attr::kDimensions, permutation}}}));
  }

  void StepSlice(Instruction* x) {
    std::vector<SliceDimension> slices;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      int size = static_cast<int>(x->shape().dim(d));
      SliceDimension s{0, size, 1};
      if (size > 0 && Chance(50)) {
        s.start = Pick(0, size - 1);
        s.limit = Chance(95) ? Pick(static_cast<int>(s.start) + 1, size) : s.start;
        s.stride = OneOf({1, 2});
      }
      slices.push_back(s);
    }
    Instruction* r = Keep(
        Add({.opcode = Opcode::kSlice, .operands = {x}, .attributes = {{Attr::kSlice, slices}}}));
    bool strided = std::ranges::any_of(slices, [](const SliceDimension& s) {
      return s.stride > 1 && s.limit - s.start > s.stride;
    });
    if (Chance(strided ? 80 : 20) && r->shape().num_elements() > 1) StepSlice(r);
  }

  void StepReverse(Instruction* x) {
    for (int n = Pick(1, 2); n > 0; --n) {
      Ints dimensions;
      for (int64_t d = 0; d < x->shape().rank(); ++d) {
        if (Chance(60)) dimensions.push_back(d);
      }
      x = Keep(Add({.opcode = Opcode::kReverse,
                    .operands = {x},
                    .attributes = {{Attr::kDimensions, dimensions}}}));
    }
  }

  void StepSliceOrWindow(Instruction* x) {
    RandomSource source{*module_, *c_, random_, values_, kMaxElements, 5};
    RandomOp op = Chance(30) ? RandomReduceWindow(source, x) : RandomIndexedOp(source, x);
    if (IsExact() && op.rounds) return;
    for (Instruction* r : op.results) Keep(r);
  }

  void StepIdiom(Instruction* x) {
    RandomSource source{*module_, *c_, random_, values_, kMaxElements, 5};
    for (Instruction* r : RandomIdiom(source, x, IsExact())) Keep(r);
  }

  Instruction* WithoutNans(Instruction* x) {
    Instruction* is_number = Add({.opcode = Opcode::kCompare,
                                  .operands = {x, x},
                                  .attributes = {{Attr::kDirection, Direction::kEq}}});
    Instruction* zero = Spread(
        x->shape(),
        Add({.opcode = Opcode::kConstant,
             .shape = Shape::Scalar(x->shape().type()),
             .literal = std::make_shared<const Literal>(Literal::ScalarOf(x->shape().type(), 0))}));
    return Add({.opcode = Opcode::kSelect, .operands = {is_number, x, zero}});
  }

  // The bits of a NaN are nobody's promise.
  void StepBits(Instruction* x) {
    ElementType type = x->shape().type();
    if (Chance(15) && x->shape().rank() > 0) {
      int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
      Keep(Add({.opcode = Opcode::kGetDimensionSize,
                .operands = {x},
                .attributes = {{Attr::kDimensions, Ints{d}}}}));
    } else if (IsFloat(type) && Chance(60)) {
      for (int n = Pick(1, 2); n > 0; --n) {
        x = Keep(Add({.opcode = Opcode::kReducePrecision,
                      .operands = {x},
                      .attributes = {
                          {Attr::kExponentBits, int64_t{OneOf({1, 5, 8, 11})}},
                          {Attr::kMantissaBits, int64_t{IsExact() ? 7 : OneOf({0, 7, 23, 52})}}}}));
      }
    } else if (!IsExact() && (type == ElementType::kF32 || type == ElementType::kS32)) {
      // To another type and on to a third, which may be the first.
      std::vector<int64_t> dims = x->shape().dims();
      if (type == ElementType::kF32) x = WithoutNans(x);
      if (Chance(50)) {
        Shape same(type == ElementType::kF32 ? ElementType::kS32 : ElementType::kF32, dims);
        x = Keep(Add({.opcode = Opcode::kBitcastConvert, .operands = {x}, .shape = same}));
      }
      Shape last(OneOf({ElementType::kF32, ElementType::kS32}), dims);
      if (dims.size() < 4) {
        dims.push_back(4);
        Shape bytes(ElementType::kU8, dims);
        x = Keep(Add({.opcode = Opcode::kBitcastConvert, .operands = {x}, .shape = bytes}));
      }
      Keep(Add({.opcode = Opcode::kBitcastConvert, .operands = {x}, .shape = last}));
    }
  }

  Instruction* Part(Instruction* x, int64_t d, int64_t start, int64_t limit) {
    std::vector<SliceDimension> slices;
    for (int64_t k = 0; k < x->shape().rank(); ++k) slices.push_back({0, x->shape().dim(k), 1});
    slices[static_cast<size_t>(d)] = {start, limit, 1};
    return Add({.opcode = Opcode::kSlice, .operands = {x}, .attributes = {{Attr::kSlice, slices}}});
  }

  void StepConcatenate(Instruction* x) {
    if (x->shape().rank() == 0 || Extent(x->shape()) > kMaxElements / 4) return;
    int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
    int size = static_cast<int>(x->shape().dim(d));
    std::vector<Instruction*> operands;
    if (Chance(40)) {
      // Parts that follow each other.
      int at = Pick(0, size), to = Pick(at, size);
      operands = {Part(x, d, 0, at), Part(x, d, at, to)};
      if (Chance(60)) operands.push_back(Part(x, d, to, size));
    } else {
      operands = {x, Partner(x)};
      if (Chance(40)) operands.push_back(Partner(x));
      if (Chance(30)) std::swap(operands[0], operands.back());
    }
    Instruction* r = Keep(Add({.opcode = Opcode::kConcatenate,
                               .operands = operands,
                               .attributes = {{Attr::kDimensions, Ints{d}}}}));
    if (Chance(50)) return StepSlice(r);
    if (Chance(30)) StepReduce(r);
  }

  void StepPad(Instruction* x) {
    if (Extent(x->shape()) > kMaxElements / 4) return;
    std::vector<PaddingDimension> padding;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      int64_t size = x->shape().dim(d);
      PaddingDimension p;
      if (Chance(50)) p = {Pick(-1, 1), Pick(-1, 1), Chance(20) ? 1 : 0};
      if (size + p.low + p.high + std::max<int64_t>(size - 1, 0) * p.interior < 0) p = {};
      padding.push_back(p);
    }
    bool again = x->opcode() == Opcode::kPad && Chance(60);
    Instruction* value = again ? x->operand(1) : Constant(x->shape().type());
    if (x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().is_scalar() && Chance(50)) {
      value = x->operand(0);
    }
    Instruction* r = Keep(Add({.opcode = Opcode::kPad,
                               .operands = {x, value},
                               .attributes = {{Attr::kPadding, padding}}}));
    if (Chance(40)) StepSlice(r);
    if (Chance(30)) StepPad(r);
    if (Chance(20)) StepReduce(r);
  }

  Computation* Reducer(Opcode opcode, ElementType type) {
    Computation* reducer = module_->AddComputation(Cat("reduce_", OpcodeName(opcode)));
    std::vector<Instruction*> p;
    for (int64_t n = 0; n < 2; ++n) {
      p.push_back(*reducer->Add({.opcode = Opcode::kParameter,
                                 .attributes = {{Attr::kParameterNumber, n}},
                                 .shape = Shape::Scalar(type)}));
    }
    if (Chance(30)) std::swap(p[0], p[1]);
    reducer->set_root(*reducer->Add({.opcode = opcode, .operands = {p[0], p[1]}}));
    return reducer;
  }

  void StepReduce(Instruction* x) {
    ElementType type = x->shape().type();
    Opcode opcode =
        OneOf({Opcode::kAdd, Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum, Opcode::kMultiply});
    if (!IsFloat(type) && Chance(50)) {
      opcode = OneOf({Opcode::kAnd, Opcode::kOr, Opcode::kXor});
    }
    Ints dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Chance(50)) dims.push_back(d);
    }
    bool rounds = opcode == Opcode::kAdd || opcode == Opcode::kMultiply;
    if (IsExact() && IsFloat(type) && rounds) opcode = Opcode::kMaximum;
    bool again = x->opcode() == Opcode::kReduce;
    if (again) opcode = x->called(0)->root()->opcode();
    Instruction* init = again && Chance(70) ? x->operand(1) : Constant(type);
    Instruction* r = Keep(Add({.opcode = Opcode::kReduce,
                               .operands = {x, init},
                               .attributes = {{Attr::kDimensions, dims}},
                               .called = {Reducer(opcode, type)}}));
    if (Chance(40) && r->shape().rank() > 0) StepReduce(r);
  }

  void StepDot(Instruction* x) {
    if (IsExact() && IsFloat(x->shape().type())) return;
    const Shape& s = x->shape();
    Ints batch, contracting, rhs_batch, rhs_contracting;
    std::vector<int64_t> rhs;
    int64_t result = 1;
    for (int64_t d = 0; d < s.rank(); ++d) {
      int what = s.dim(d) <= 1 ? 1 : Pick(0, 3);
      if (what == 0) {
        batch.push_back(d);
        rhs_batch.push_back(static_cast<int64_t>(rhs.size()));
        rhs.push_back(s.dim(d));
      } else if (what <= 2) {
        contracting.push_back(d);
        rhs_contracting.push_back(static_cast<int64_t>(rhs.size()));
        rhs.push_back(s.dim(d));
      }
      if (what == 0 || what == 3) result *= s.dim(d);
    }
    if (Chance(60) && result < 50) rhs.push_back(OneOf({1, 2, 3}));
    Shape of_rhs(s.type(), std::span<const int64_t>(rhs));
    Instruction* y = Chance(20) ? Spread(of_rhs, Constant(s.type())) : Parameter(of_rhs);
    ElementType type = s.type();
    if (IsHalf(type) && Chance(30)) type = ElementType::kF32;
    if (type == ElementType::kF32 && Chance(20)) type = ElementType::kF64;
    if (type == ElementType::kS32 && Chance(20)) type = ElementType::kS64;
    Instruction* r = Keep(Add({.opcode = Opcode::kDot,
                               .operands = {x, y},
                               .attributes = {{Attr::kLhsBatchDims, batch},
                                              {Attr::kRhsBatchDims, rhs_batch},
                                              {Attr::kLhsContractingDims, contracting},
                                              {Attr::kRhsContractingDims, rhs_contracting}},
                               .shape = Shape::Scalar(type)}));
    if (Chance(50)) StepTranspose(r);
  }

  // Not of floats: with NaNs less-than is no order.
  void StepSort(Instruction* x) {
    ElementType type = x->shape().type();
    if (x->shape().rank() == 0 || IsFloat(type)) return;
    auto direction = OneOf({Direction::kLt, Direction::kGt});
    int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
    for (int n = Pick(1, 2); n > 0; --n) {
      Computation* comparator = module_->AddComputation("comparator");
      std::vector<Instruction*> p;
      for (int64_t k = 0; k < 2; ++k) {
        p.push_back(*comparator->Add({.opcode = Opcode::kParameter,
                                      .attributes = {{Attr::kParameterNumber, k}},
                                      .shape = Shape::Scalar(type)}));
      }
      comparator->set_root(*comparator->Add({.opcode = Opcode::kCompare,
                                             .operands = p,
                                             .attributes = {{Attr::kDirection, direction}}}));
      x = Keep(Add({.opcode = Opcode::kSort,
                    .operands = {x},
                    .attributes = {{Attr::kDimensions, Ints{d}}},
                    .called = {comparator}}));
    }
  }

  void StepIota() {
    Shape shape = RandomShape();
    if (shape.rank() == 0 || IsPred(shape.type())) return;
    int64_t d = Pick(0, static_cast<int>(shape.rank()) - 1);
    Keep(Add({.opcode = Opcode::kIota, .attributes = {{Attr::kIotaDimension, d}}, .shape = shape}));
  }

  const FodderKind kind_;
  std::mt19937_64 random_;
  std::unique_ptr<ir::Module> module_;
  Computation* c_ = nullptr;
  std::vector<Instruction*> values_;
};

}  // namespace

std::unique_ptr<ir::Module> Fodder(uint64_t seed, int ops, FodderKind kind) {
  return Generator(seed, kind).Run(ops);
}

std::vector<Literal> SpecialArguments(const ir::Module& module, uint64_t seed) {
  std::mt19937_64 random(seed + 99);
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    Literal& l = arguments.emplace_back(p->shape());
    VisitKernelType(p->shape().type(), [&](auto zero) {
      using T = decltype(zero);
      for (T& value : l.values<T>()) value = SpecialValue<T>(random);
    });
  }
  return arguments;
}

std::string BitDifference(const Literal& expected, const Literal& actual) {
  if (!expected.shape().SameTypeAndDimensions(actual.shape())) {
    return Cat("shape ", actual.shape(), ", expected ", expected.shape());
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    std::string inner = BitDifference(expected.elements()[i], actual.elements()[i]);
    if (!inner.empty()) return Cat("element ", i, ": ", inner);
  }
  if (!expected.shape().is_array()) return "";
  return VisitType(expected.shape().type(), [&](auto zero) -> std::string {
    using T = decltype(zero);
    // Parts that are NaN need no more than that in common.
    auto same = [](const auto& x, const auto& y) {
      return std::memcmp(&x, &y, sizeof(x)) == 0 || (x != x && y != y);
    };
    auto e = expected.values<T>(), a = actual.values<T>();
    for (size_t k = 0; k < e.size(); ++k) {
      if constexpr (ComplexType<T>) {
        if (same(e[k].real(), a[k].real()) && same(e[k].imag(), a[k].imag())) continue;
      } else {
        if (same(e[k], a[k])) continue;
      }
      return Cat("element ", k, " of ", expected.shape(), ": ",
                 actual.AsDouble(static_cast<int64_t>(k)), ", expected ",
                 expected.AsDouble(static_cast<int64_t>(k)));
    }
    return "";
  });
}

}  // namespace kiln::testing
