#include "random/module.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "base/strings.h"
#include "random/convolutions.h"
#include "random/decompositions.h"
#include "random/functions.h"
#include "random/moves.h"
#include "random/ops.h"
#include "random/products.h"
#include "random/reducers.h"
#include "random/shapes.h"
#include "random/sorts.h"
#include "random/statistics.h"
#include "random/types.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

// Programs of arrays that are no larger run on one thread.
constexpr int64_t kSmall = 20000;

class Generator {
 public:
  Generator(uint64_t seed, const RandomModuleOptions& options)
      : random_(seed * 2654435761u + 1),
        options_(options),
        module_(std::make_unique<ir::Module>(Cat("random_", seed))) {}

  std::unique_ptr<ir::Module> Run() {
    c_ = module_->AddComputation("main");
    module_->set_entry(c_);
    int parameters = Pick(2, 5);
    for (int i = 0; i < parameters; ++i) AddParameter(RandomShape());
    for (int i = 0; i < options_.ops; ++i) Step();
    std::vector<Instruction*> results;
    for (Instruction* i : c_->instructions()) {
      if (i->users().empty() && i->opcode() != Opcode::kParameter) results.push_back(i);
    }
    const size_t most = options_.rare_types ? 32 : 8;
    if (results.size() > most) results.resize(most);
    if (results.empty()) results.push_back(values_.back());
    if (options_.rare_types) AddRandomLayouts(*c_, random_);
    c_->set_root(Add({.opcode = Opcode::kTuple, .operands = results}));
    module_->SortComputations();
    return std::move(module_);
  }

 private:
  int Pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }

  int64_t RandomSize() {
    static constexpr int64_t kSizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 100};
    static constexpr int64_t kLargeSizes[] = {128, 257, 512, 999, 4096};
    if (options_.max_elements > kSmall && Chance(60)) {
      return kLargeSizes[Pick(0, std::size(kLargeSizes) - 1)];
    }
    return Chance(2) ? 0 : kSizes[Pick(0, std::size(kSizes) - 1)];
  }

  Shape RandomShape() {
    int rank = Chance(70) ? Pick(1, 3) : Pick(0, options_.max_rank);
    if (options_.max_elements > kSmall && Chance(70)) rank = Pick(2, 3);
    std::vector<int64_t> dims;
    int64_t elements = 1;
    for (int d = 0; d < rank; ++d) {
      int64_t size = RandomSize();
      if (elements * size > options_.max_elements) size = 1;
      elements *= size;
      dims.push_back(size);
    }
    return Shape(RandomType(), std::span<const int64_t>(dims));
  }
  ElementType RandomType() {
    if (options_.smooth) return kSmoothTypes[Pick(0, std::size(kSmoothTypes) - 1)];
    if (options_.rare_types && Chance(75)) return kRareTypes[Pick(0, std::size(kRareTypes) - 1)];
    return kValueTypes[Pick(0, std::size(kValueTypes) - 1)];
  }

  // Adds to the current computation; a generator that makes invalid ops is broken itself.
  Instruction* Add(ir::InstructionSpec spec) {
    auto made = c_->Add(std::move(spec));
    if (!made.ok()) {
      std::cerr << "random module: " << made.status().ToString() << "\n";
      std::abort();
    }
    return *made;
  }

  Instruction* AddParameter(const Shape& shape) {
    int64_t number = static_cast<int64_t>(c_->parameters().size());
    Instruction* p = Add({.opcode = Opcode::kParameter,
                          .attributes = {{Attr::kParameterNumber, number}},
                          .shape = shape});
    Keep(p, true);
    return p;
  }

  // Makes a value an operand of later ops. A narrow float that may be a step off is a result, moved
  // at most: nothing bounds what is made of it.
  Instruction* Keep(Instruction* value, bool exact) {
    const ElementType type = value->shape().type();
    if (IsNarrowFloat(type) && !exact) return Chance(50) ? RandomShapeOp(Source(), value) : value;
    values_.push_back(value);
    if (exact || IsCounted(type)) exact_.insert(value);
    return value;
  }
  bool IsExact(const Instruction* value) const { return exact_.contains(value); }

  Instruction* AnyValue() {
    // Young ones more often, so that chains grow.
    int n = static_cast<int>(values_.size());
    return values_[Chance(60) ? Pick(std::max(0, n - 6), n - 1) : Pick(0, n - 1)];
  }
  Instruction* AnyExact(Instruction* fallback) {
    for (int i = 0; i < 8; ++i) {
      Instruction* v = AnyValue();
      if (IsExact(v)) return v;
    }
    return IsExact(fallback) ? fallback : values_[0];
  }

  Instruction* Scalar(ElementType type, double value) {
    return Add({.opcode = Opcode::kConstant,
                .shape = Shape::Scalar(type),
                .literal = std::make_shared<const Literal>(Literal::ScalarOf(type, value))});
  }
  Instruction* Full(const Shape& shape, double value) {
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {Scalar(shape.type(), value)},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = shape});
  }
  Instruction* Unary(Opcode opcode, Instruction* x) {
    return Add({.opcode = opcode, .operands = {x}});
  }
  Instruction* Binary(Opcode opcode, Instruction* x, Instruction* y) {
    return Add({.opcode = opcode, .operands = {x, y}});
  }
  Instruction* Element(Instruction* tuple, int64_t k) {
    return Add({.opcode = Opcode::kGetTupleElement,
                .operands = {tuple},
                .attributes = {{Attr::kIndex, k}}});
  }
  // Sums of half types stay where a step is small.
  Instruction* Tamed(Instruction* x) {
    return IsHalf(x->shape().type()) || IsComplex(x->shape().type()) ? Clamped(x, -8, 8) : x;
  }
  Instruction* Clamped(Instruction* x, double low, double high) {
    ElementType type = x->shape().type();
    if (IsComplex(type)) return BoundedParts(Source(), x, high);
    if (low < 0) low = LowerBound(type, -low);
    return Add({.opcode = Opcode::kClamp, .operands = {Scalar(type, low), x, Scalar(type, high)}});
  }

  // Another value of the shape and type of x: one that exists, or one made for it.
  Instruction* Like(Instruction* x) {
    std::vector<Instruction*> fitting;
    for (Instruction* v : values_) {
      if (v->shape() == x->shape()) fitting.push_back(v);
    }
    if (fitting.size() > 1 && Chance(70))
      return fitting[Pick(0, static_cast<int>(fitting.size()) - 1)];
    if (Chance(50)) return Full(x->shape(), IsPred(x->shape().type()) ? Pick(0, 1) : Pick(1, 3));
    // A vector along one dimension, spread over the others.
    if (x->shape().rank() > 0 && x->shape().num_elements() > 0) {
      int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
      Instruction* v = AddParameter(Shape(x->shape().type(), {x->shape().dim(d)}));
      return Add({.opcode = Opcode::kBroadcast,
                  .operands = {v},
                  .attributes = {{Attr::kDimensions, Ints{d}}},
                  .shape = x->shape()});
    }
    return AddParameter(x->shape());
  }

  void Step() {
    if (options_.smooth && Chance(15)) return StepDecomposition();
    switch (Pick(0, options_.control_flow ? 24 : 20)) {
      case 0:
      case 1:
      case 2:
        Chance(options_.rare_types ? 60
               : options_.smooth   ? 20
                                   : 0)
            ? StepRareType()
            : void(StepUnary(AnyValue()));
        break;
      case 3:
      case 4:
      case 5:
        StepBinary(AnyValue());
        break;
      case 6:
        Chance(65) ? StepCompareSelect() : StepCountOrClamp();
        break;
      case 7:
        StepConvert();
        break;
      case 8:
        StepBroadcast();
        break;
      case 9:
        StepShape(RandomReshape);
        break;
      case 10:
        StepShape(RandomTranspose);
        break;
      case 11:
        StepShape(RandomSlice);
        break;
      case 12:
        StepConcatenate();
        break;
      case 13:
        StepShape(RandomPad);
        break;
      case 14:
      case 15:
        StepReduce();
        break;
      case 16:
        StepDot();
        break;
      case 17:
      case 18:
      case 19:
      case 20:
        StepMoves();
        break;
      case 21:
        StepWhile();
        break;
      case 22:
        StepConditional();
        break;
      case 23:
        StepCall();
        break;
      case 24:
        Chance(60) ? StepMap() : StepBarrier();
        break;
    }
  }

  // One elementwise op of x that keeps its shape and type.
  Instruction* StepUnary(Instruction* x) {
    ElementType type = x->shape().type();
    if (IsNarrowFloat(type)) return Keep(RandomNarrowFunction(Source(), x), true);
    if (IsComplex(type)) {
      RandomOp op = RandomComplexFunction(Source(), x);
      return Keep(op.results[0], !op.rounds && IsExact(x));
    }
    if (IsPred(type)) return Keep(Unary(Chance(80) ? Opcode::kNot : Opcode::kCopy, x), true);
    if (IsInteger(type)) {
      return Keep(Unary(kIntegerFunctions[Pick(0, std::size(kIntegerFunctions) - 1)], x), true);
    }
    if (IsExact(x) && Chance(40)) {
      static constexpr Opcode kOps[] = {Opcode::kCeil,   Opcode::kFloor,           Opcode::kSign,
                                        Opcode::kCopy,   Opcode::kRoundNearestAfz, Opcode::kAbs,
                                        Opcode::kNegate, Opcode::kRoundNearestEven};
      return Keep(Unary(kOps[Pick(0, std::size(kOps) - 1)], x), true);
    }
    if (Chance(40)) return StepFunction(x);
    Instruction* positive = nullptr;
    switch (Pick(0, 9)) {
      case 0:
        return Keep(Unary(Opcode::kExponential, Clamped(x, -3, 3)), false);
      case 1:
        return Keep(Unary(Opcode::kExponentialMinusOne, Clamped(x, -3, 3)), false);
      case 2:
        return Keep(Unary(Opcode::kTanh, x), false);
      case 3:
        return Keep(Unary(Opcode::kLogistic, x), false);
      case 4:
        return Keep(Unary(Opcode::kNegate, x), IsExact(x));
      case 5:
        return Keep(Unary(Opcode::kAbs, x), IsExact(x));
      default:
        positive = Binary(Opcode::kAdd, Unary(Opcode::kAbs, x), Full(x->shape(), 0.5));
    }
    static constexpr Opcode kOps[] = {Opcode::kLog, Opcode::kLogPlusOne, Opcode::kSqrt,
                                      Opcode::kRsqrt};
    return Keep(Unary(kOps[Pick(0, std::size(kOps) - 1)], positive), false);
  }

  Instruction* StepFunction(Instruction* x) {
    RandomOp op = RandomFunction(Source(), x, IsExact(x));
    bool exact = !op.rounds && std::ranges::all_of(op.data, [&](auto* i) { return IsExact(i); });
    return Keep(op.results[0], exact);
  }

  // What only complex numbers and narrow floats have, or what rounds of them.
  void StepRareType() {
    Instruction* x = AnyValue();
    for (int i = 0; i < 4 && !IsComplex(x->shape().type()) && !IsNarrowFloat(x->shape().type());
         ++i) {
      x = AnyValue();
    }
    ElementType type = x->shape().type();
    if (IsComplex(type)) {
      RandomOp op = RandomParts(Source(), x);
      for (Instruction* r : op.results) Keep(r, !op.rounds && IsExact(x));
    } else if (ComplexOf(type) != type) {
      Instruction* y = Like(x);
      Keep(Binary(Opcode::kComplex, x, y), IsExact(x) && IsExact(y));
    } else if (!IsNarrowFloat(type)) {
      StepUnary(x);
    } else if (Chance(10)) {
      StepCompare(x);
    } else if (Chance(10)) {
      if (Instruction* bits = RandomNarrowBits(Source(), type)) Keep(bits, true);
    } else if (Chance(70)) {
      StepFunction(x);
    } else {
      static constexpr Opcode kOps[] = {
          Opcode::kExponential, Opcode::kExponentialMinusOne, Opcode::kTanh, Opcode::kLogistic,
          Opcode::kLog,         Opcode::kLogPlusOne,          Opcode::kRsqrt};
      if (Chance(15)) {
        Keep(Binary(Opcode::kPower, x, Like(x)), false);
      } else {
        Keep(Unary(kOps[Pick(0, std::size(kOps) - 1)], x), false);
      }
    }
  }

  // Not continuous: of what is exact only.
  void StepStochasticConvert(Instruction* x) {
    static constexpr ElementType kTo[] = {ElementType::kS8,  ElementType::kS16, ElementType::kS32,
                                          ElementType::kS64, ElementType::kS4,  ElementType::kS2};
    Shape random = x->shape(), to = x->shape();
    int64_t bits = BitWidth(x->shape().type());
    if (bits == 6) return;  // there are no integers of so many
    random.set_type(bits == 4    ? ElementType::kU4
                    : bits == 8  ? ElementType::kU8
                    : bits == 16 ? ElementType::kU16
                    : bits == 32 ? ElementType::kU32
                                 : ElementType::kU64);
    to.set_type(kTo[Pick(0, options_.rare_types ? 5 : 3)]);
    Keep(Add({.opcode = Opcode::kStochasticConvert,
              .operands = {x, AddParameter(random)},
              .shape = to}),
         true);
  }

  Instruction* StepBinary(Instruction* x) {
    Instruction* y = Like(x);
    ElementType type = x->shape().type();
    if (IsPred(type)) {
      static constexpr Opcode kOps[] = {Opcode::kAnd,    Opcode::kOr,       Opcode::kXor,
                                        Opcode::kAdd,    Opcode::kMultiply, Opcode::kMaximum,
                                        Opcode::kMinimum};
      return Keep(Binary(kOps[Pick(0, std::size(kOps) - 1)], x, y), true);
    }
    if (IsNarrowFloat(type)) return Keep(RandomNarrowOp(Source(), x, y), true);
    if (IsComplex(type)) {
      RandomOp op = RandomComplexOp(Source(), x, y, IsExact(x) && IsExact(y));
      return Keep(op.results[0], !op.rounds);
    }
    if (IsInteger(type)) {
      return Keep(Binary(kIntegerOps[Pick(0, std::size(kIntegerOps) - 1)], x, y), true);
    }
    switch (Pick(0, 7)) {
      case 0:
        return Keep(Binary(Opcode::kAdd, x, y), false);
      case 1:
        return Keep(Binary(Opcode::kSubtract, x, y), false);
      case 2: {
        const Opcode op = Chance(20) ? Opcode::kMultiplyNoNan : Opcode::kMultiply;
        return Keep(Clamped(Binary(op, x, y), -8, 8), false);
      }
      case 3:
        return Keep(Binary(Opcode::kMaximum, x, y), IsExact(x) && IsExact(y));
      case 4:
        return Keep(Binary(Opcode::kMinimum, x, y), IsExact(x) && IsExact(y));
      case 5:
        if (IsExact(x) && IsExact(y)) {
          // Not by 0: a NaN has no place in an order.
          Instruction* least = Full(x->shape(), 0.5);
          y = Binary(Opcode::kMaximum, Unary(Opcode::kAbs, y), least);
          return Keep(Binary(Opcode::kRemainder, x, y), true);
        }
        return Keep(Binary(Opcode::kAdd, x, y), false);
      case 6: {
        Instruction* d = Binary(Opcode::kAdd, Unary(Opcode::kAbs, y), Full(x->shape(), 0.5));
        return Keep(Binary(Opcode::kDivide, x, d), false);
      }
      default: {
        Instruction* base =
            Binary(Opcode::kAdd, Unary(Opcode::kAbs, Clamped(x, -3, 3)), Full(x->shape(), 0.5));
        return Keep(Binary(Opcode::kPower, base, Clamped(y, -2, 2)), false);
      }
    }
  }

  Instruction* StepCompare(Instruction* x) {
    Instruction* y = Full(x->shape(), IsPred(x->shape().type()) ? 1 : Pick(0, 2));
    Attributes order = {{Attr::kDirection, static_cast<Direction>(Pick(0, 5))}};
    if (IsComplex(x->shape().type())) {
      order.Set(Attr::kDirection, Chance(50) ? Direction::kEq : Direction::kNe);
    }
    if (IsFloat(x->shape().type()) && Chance(20)) {
      order.Set(Attr::kOrderType, std::string("TOTALORDER"));
      x = WithoutNans(Source(), x);
    }
    Instruction* p =
        Keep(Add({.opcode = Opcode::kCompare, .operands = {x, y}, .attributes = order}), true);
    if (IsFloat(x->shape().type()) && IsExact(x) && Chance(20)) StepStochasticConvert(x);
    if (IsFloat(x->shape().type()) && Chance(30)) Keep(Unary(Opcode::kIsFinite, x), true);
    return p;
  }

  void StepCompareSelect() {
    Instruction* p = StepCompare(AnyExact(AnyValue()));
    for (Instruction* v : values_) {
      if (v == p || !v->shape().SameDimensions(p->shape()) || Chance(50)) continue;
      Instruction* w = Like(v);
      Keep(Add({.opcode = Opcode::kSelect, .operands = {p, v, w}}), IsExact(v) && IsExact(w));
      return;
    }
  }

  // Counts, and clamps between scalars or arrays.
  void StepCountOrClamp() {
    Instruction* x = AnyValue();
    ElementType type = x->shape().type();
    if ((Chance(50) || (IsComplex(type) && !IsExact(x))) && x->shape().rank() > 0 &&
        !IsPred(type)) {
      int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
      // Narrow types count a little way, and halves exactly.
      if (x->shape().dim(d) > 100) return;
      Keep(Add({.opcode = Opcode::kIota,
                .attributes = {{Attr::kIotaDimension, d}},
                .shape = x->shape()}),
           true);
      return;
    }
    if (IsComplex(type) && !IsExact(x)) return;
    auto bound = [&](double value) {
      return Chance(50) ? Scalar(type, value) : Full(x->shape(), value);
    };
    int low = IsPred(type) ? Pick(0, 1) : Pick(0, 3), high = IsPred(type) ? 1 : Pick(low, 7);
    Instruction* l = bound(low);
    Keep(Add({.opcode = Opcode::kClamp, .operands = {l, x, bound(high)}}), IsExact(x));
  }

  void StepConvert() {
    Instruction* x = AnyValue();
    ElementType to = RandomType();
    if (IsCounted(to) || to == ElementType::kF8E8M0FNU) x = AnyExact(x);
    const ElementType from = x->shape().type();
    // What is too large jumps where it becomes an infinity or a NaN, and is too much for sums.
    if ((IsNarrowFloat(to) && !IsExact(x)) || (IsNarrowFloat(from) && !IsNarrowFloat(to))) {
      x = Keep(Clamped(x, -4, 4), IsExact(x));
    }
    Shape shape = x->shape();
    shape.set_type(to);
    Keep(Add({.opcode = Opcode::kConvert, .operands = {x}, .shape = shape}), IsExact(x));
  }

  void StepBroadcast() {
    Instruction* x = AnyValue();
    if (x->shape().rank() >= options_.max_rank) return;
    std::vector<int64_t> dims;
    Ints mapping;
    int64_t elements = std::max<int64_t>(x->shape().num_elements(), 1);
    for (int64_t d = 0; d <= x->shape().rank(); ++d) {
      int64_t size = RandomSize();
      if (static_cast<int>(dims.size()) < options_.max_rank && Chance(40) &&
          elements * size <= options_.max_elements) {
        elements *= std::max<int64_t>(size, 1);
        dims.push_back(size);
      }
      if (d == x->shape().rank()) break;
      mapping.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(x->shape().dim(d));
    }
    Keep(Add({.opcode = Opcode::kBroadcast,
              .operands = {x},
              .attributes = {{Attr::kDimensions, mapping}},
              .shape = Shape(x->shape().type(), std::span<const int64_t>(dims))}),
         IsExact(x));
  }

  RandomSource Source() {
    return {*module_,
            *c_,
            random_,
            values_,
            options_.max_elements,
            options_.max_rank,
            options_.rare_types,
            options_.smooth};
  }

  void StepDecomposition() {
    for (Instruction* r : RandomDecomposition(Source(), AnyValue()).results) {
      Keep(Tamed(r), false);
    }
  }

  void StepMoves() {
    RandomSource source = Source();
    Instruction* x = AnyValue();
    if (Chance(40)) x = AnyExact(x);
    if (IsExact(x) && Chance(15)) {
      RandomOp sort = RandomSort(source, x, [this](const Instruction* i) { return IsExact(i); });
      bool exact = std::ranges::all_of(
          sort.data, [&](auto* i) { return i->opcode() == Opcode::kIota || IsExact(i); });
      for (Instruction* r : sort.results) Keep(r, exact);
      return;
    }
    RandomOp op = IsExact(x) && Chance(15)   ? RandomSelectAndScatter(source, x)
                  : Chance(25)               ? RandomReduceWindow(source, Summand(x))
                  : IsExact(x) && Chance(50) ? RandomBitsOp(source, x)
                                             : RandomIndexedOp(source, x);
    bool exact = !op.rounds && std::ranges::all_of(op.data, [&](auto* i) {
      return i->opcode() == Opcode::kParameter || IsExact(i);
    });
    for (Instruction* r : op.results) Keep(op.rounds ? Tamed(r) : r, exact);
  }

  // Narrow floats of a size that sums bear.
  Instruction* Summand(Instruction* x) {
    return IsNarrowFloat(x->shape().type()) ? Clamped(x, -8, 8) : x;
  }

  void StepShape(Instruction* (*op)(const RandomSource&, Instruction*)) {
    Instruction* x = AnyValue();
    if (Instruction* moved = op(Source(), x)) Keep(moved, IsExact(x));
  }

  void StepMap() {
    Instruction* x = AnyValue();
    Ints dimensions(static_cast<size_t>(x->shape().rank()));
    for (size_t d = 0; d < dimensions.size(); ++d) dimensions[d] = static_cast<int64_t>(d);
    Computation* f = Function("function", Shape::Scalar(x->shape().type()), Pick(0, 2));
    Keep(Add({.opcode = Opcode::kMap,
              .operands = {x},
              .attributes = {{Attr::kDimensions, dimensions}},
              .called = {f}}),
         IsNarrowFloat(x->shape().type()));
  }

  void StepBarrier() {
    Instruction *x = AnyValue(), *y = AnyValue();
    if (Chance(30)) {
      std::vector<Literal> parts = {Literal::ScalarOf(x->shape().type(), Pick(0, 1)),
                                    Literal::ScalarOf(ElementType::kS32, Pick(0, 9))};
      auto literal = std::make_shared<const Literal>(Literal::Tuple(std::move(parts)));
      Instruction* t =
          Add({.opcode = Opcode::kConstant, .shape = literal->shape(), .literal = literal});
      for (int64_t k = 0; k < 2; ++k) Keep(Element(t, k), true);
      return;
    }
    if (Chance(40)) {
      Keep(Add({.opcode = Opcode::kOptBarrier, .operands = {x}}), IsExact(x));
      return;
    }
    Instruction* t = Add({.opcode = Opcode::kTuple, .operands = {x, y}});
    t = Add({.opcode = Opcode::kOptBarrier, .operands = {t}});
    for (int64_t k = 0; k < 2; ++k) Keep(Element(t, k), IsExact(k == 0 ? x : y));
  }

  void StepConcatenate() {
    Instruction* x = AnyValue();
    if (x->shape().rank() == 0 || x->shape().num_elements() > options_.max_elements / 3) return;
    int64_t d = Pick(0, static_cast<int>(x->shape().rank()) - 1);
    Instruction* y = Like(x);
    std::vector<Instruction*> operands = {x, y};
    if (Chance(30)) operands.push_back(x);
    Keep(Add({.opcode = Opcode::kConcatenate,
              .operands = operands,
              .attributes = {{Attr::kDimensions, Ints{d}}}}),
         IsExact(x) && IsExact(y));
  }

  Ints SomeDimensions(const Shape& shape) {
    Ints dims;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (Chance(50)) dims.push_back(d);
    }
    return dims;
  }

  void StepReduce() {
    Instruction* x = AnyValue();
    ElementType type = x->shape().type();
    Ints dims = SomeDimensions(x->shape());
    if (Chance(8) && IsFloat(type)) {
      if (!IsNarrowFloat(type)) x = Clamped(x, -4, 4);
      for (Instruction* r : RandomBatchNorm(Source(), x).results) Keep(Tamed(r), false);
      return;
    }
    if (Chance(20)) {
      x = AnyExact(x);
      x = WithoutNans(Source(), x);
      dims = SomeDimensions(x->shape());
      Shape shape = x->shape();
      shape.set_type(ElementType::kS32);
      if (shape.rank() == 0 || IsPred(x->shape().type()) || IsComplex(x->shape().type())) return;
      Instruction* index = Add({.opcode = Opcode::kIota,
                                .attributes = {{Attr::kIotaDimension, int64_t{0}}},
                                .shape = shape});
      Instruction* r =
          Add({.opcode = Opcode::kReduce,
               .operands = {x, index, Scalar(x->shape().type(), 0), Scalar(ElementType::kS32, -1)},
               .attributes = {{Attr::kDimensions, dims}},
               .called = {ArgMax(*module_, x->shape().type(), ElementType::kS32)}});
      for (int64_t k = 0; k < 2; ++k) Keep(Element(r, k), true);
      return;
    }
    Opcode opcode = Opcode::kAdd;
    bool exact = IsCounted(type);
    if (IsPred(type)) {
      opcode = Chance(50) ? Opcode::kOr : Opcode::kAnd;
    } else if ((IsComplex(type) || (options_.smooth && IsFloat(type))) && Chance(30)) {
      opcode = Opcode::kMultiply;
      x = Clamped(x, -0.5, 0.5);
    } else if (Chance(40) && (!IsComplex(type) || IsExact(x))) {
      opcode = Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
      exact = IsExact(x);
    } else if (IsInteger(type) && Chance(30)) {
      opcode = Chance(50) ? Opcode::kMultiply : Opcode::kXor;
    }
    if (opcode == Opcode::kAdd) x = Summand(x);
    Instruction* reduced =
        Add({.opcode = Opcode::kReduce,
             .operands = {x, Scalar(type, IsPred(type) ? Pick(0, 1) : Pick(0, 2))},
             .attributes = {{Attr::kDimensions, dims}},
             .called = {Reducer(*module_, opcode, type)}});
    Keep(exact ? reduced : Tamed(reduced), exact);
  }

  void StepDot() {
    Instruction* x = AnyValue();
    const bool counted = IsCounted(x->shape().type());
    if (Chance(50)) {
      RandomSource source = Source();
      if (!counted) x = Clamped(x, -0.5, 0.5);
      if (Chance(40)) {
        if (Instruction* r = RandomConvolution(source, x)) Keep(Tamed(r), false);
        return;
      }
      for (Instruction* r : RandomProduct(source, x)) Keep(Tamed(r), false);
      return;
    }
    if (!counted) x = Clamped(x, -4, 4);
    const Shape& s = x->shape();
    Ints batch, contracting, rhs_batch, rhs_contracting;
    std::vector<int64_t> rhs;
    int64_t result = 1;
    for (int64_t d = 0; d < s.rank(); ++d) {
      int what = Pick(0, 3);
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
    if (Chance(70)) {
      int64_t n = RandomSize();
      if (result * n <= options_.max_elements && Product(rhs) * n <= options_.max_elements &&
          s.num_elements() * n <= 100 * options_.max_elements) {
        rhs.push_back(n);
      }
    }
    Instruction* y = AddParameter(Shape(s.type(), std::span<const int64_t>(rhs)));
    ElementType to = s.type();
    if (Chance(30)) to = WiderSum(to);
    Keep(Tamed(Add({.opcode = Opcode::kDot,
                    .operands = {x, y},
                    .attributes = {{Attr::kLhsBatchDims, batch},
                                   {Attr::kRhsBatchDims, rhs_batch},
                                   {Attr::kLhsContractingDims, contracting},
                                   {Attr::kRhsContractingDims, rhs_contracting}},
                    .shape = Shape::Scalar(to)})),
         false);
  }

  // A computation of one parameter and a few elementwise ops, with the shape of its parameter.
  Computation* Function(const char* name, const Shape& shape, int ops) {
    Computation* saved_c = c_;
    std::vector<Instruction*> saved_values = std::move(values_);
    values_.clear();
    c_ = module_->AddComputation(name);
    Instruction* x = AddParameter(shape);
    // Its only operands are its parameter and what is made of it: no further parameters.
    for (int i = 0; i < ops; ++i) x = StepUnary(x);
    c_->set_root(x);
    Computation* function = c_;
    c_ = saved_c;
    values_ = std::move(saved_values);
    return function;
  }

  void StepWhile() {
    Instruction* x = AnyValue();
    Instruction* y = Like(x);
    Shape state = Shape::Tuple({Shape::Scalar(ElementType::kS32), x->shape(), x->shape()});
    Computation* saved_c = c_;
    std::vector<Instruction*> saved_values = std::move(values_);
    values_.clear();
    auto parameter = [&] {
      return Add({.opcode = Opcode::kParameter,
                  .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                  .shape = state});
    };
    Computation* condition = module_->AddComputation("condition");
    c_ = condition;
    Instruction* trips = Scalar(ElementType::kS32, Pick(0, 3));
    condition->set_root(Add({.opcode = Opcode::kCompare,
                             .operands = {Element(parameter(), 0), trips},
                             .attributes = {{Attr::kDirection, Direction::kLt}}}));
    Computation* body = module_->AddComputation("body");
    c_ = body;
    Instruction* p = parameter();
    Instruction* next = Binary(Opcode::kAdd, Element(p, 0), Scalar(ElementType::kS32, 1));
    Instruction *a = Element(p, 1), *b = Element(p, 2);
    Instruction* changed = StepUnary(a);
    std::vector<Instruction*> results = {next, changed, b};
    if (Chance(50)) results = {next, b, changed};
    if (Chance(20)) results = {next, changed, changed};
    body->set_root(Add({.opcode = Opcode::kTuple, .operands = results}));
    c_ = saved_c;
    values_ = std::move(saved_values);
    Instruction* start =
        Add({.opcode = Opcode::kTuple, .operands = {Scalar(ElementType::kS32, 0), x, y}});
    Instruction* loop =
        Add({.opcode = Opcode::kWhile, .operands = {start}, .called = {condition, body}});
    // The functions of narrow floats are exact.
    for (int64_t k = 1; k < 3; ++k) Keep(Element(loop, k), IsNarrowFloat(x->shape().type()));
  }

  void StepConditional() {
    Instruction* x = AnyValue();
    std::vector<Computation*> branches = {Function("branch_a", x->shape(), Pick(0, 2)),
                                          Function("branch_b", x->shape(), Pick(0, 2))};
    Instruction* index = Scalar(ElementType::kPred, Pick(0, 1));
    std::vector<Instruction*> operands = {index, x, Like(x)};
    if (Chance(50)) {
      index = AddParameter(Shape::Scalar(ElementType::kS32));
      branches.push_back(Function("branch_c", x->shape(), 1));
      operands = {index, x, Like(x), x};
    }
    Keep(Add({.opcode = Opcode::kConditional, .operands = operands, .called = branches}),
         IsNarrowFloat(x->shape().type()));
  }

  void StepCall() {
    Instruction* x = AnyValue();
    Keep(Add({.opcode = Opcode::kCall,
              .operands = {x},
              .called = {Function("function", x->shape(), Pick(1, 3))}}),
         IsNarrowFloat(x->shape().type()));
  }

  std::mt19937_64 random_;
  const RandomModuleOptions& options_;
  std::unique_ptr<ir::Module> module_;
  Computation* c_ = nullptr;
  std::vector<Instruction*> values_;
  std::set<const Instruction*> exact_;
};

}  // namespace

std::unique_ptr<ir::Module> RandomModule(uint64_t seed, const RandomModuleOptions& options) {
  return Generator(seed, options).Run();
}

Seeds RandomSeeds(int default_count) {
  const char* first = std::getenv("KILN_RANDOM_FIRST_SEED");
  const char* count = std::getenv("KILN_RANDOM_SEEDS");
  return {first ? std::atoi(first) : 0, count ? std::atoi(count) : default_count};
}

}  // namespace kiln::testing
