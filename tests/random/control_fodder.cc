#include <algorithm>
#include <random>

#include "base/strings.h"
#include "random/fodder.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

// Everything is an integer, mostly an s32 or an array of three: exact, so that no pass may change a
// bit.
class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(seed * 0x9e3779b97f4a7c15u + 777),
        module_(std::make_unique<ir::Module>(Cat("control_", seed))) {}

  std::unique_ptr<ir::Module> Run() {
    c_ = module_->AddComputation("main");
    module_->set_entry(c_);
    for (int64_t n = 0; n < 4; ++n) {
      values_.push_back(Add({.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, n}},
                             .shape = n < 2 ? kScalar : kArray}));
    }
    for (int steps = Pick(2, 5); steps > 0; --steps) Step(2);
    std::vector<Instruction*> results;
    for (int k = Pick(1, 4); k > 0; --k) results.push_back(values_[values_.size() - 1 - Index()]);
    Instruction* root = Add({.opcode = Opcode::kTuple, .operands = results});
    // Sometimes the last loop is the result, whole.
    c_->set_root(last_ && Chance(20) ? last_ : root);
    module_->SortComputations();
    return std::move(module_);
  }

 private:
  const Shape kScalar = Shape::Scalar(ElementType::kS32);
  const Shape kArray = Shape(ElementType::kS32, {3});

  int Pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  size_t Index() { return static_cast<size_t>(Pick(0, static_cast<int>(values_.size()) - 1)); }

  Instruction* Add(ir::InstructionSpec spec) { return c_->Add(std::move(spec)).value(); }
  Instruction* Constant(int32_t value) {
    return Add({.opcode = Opcode::kConstant,
                .shape = kScalar,
                .literal = std::make_shared<const Literal>(
                    Literal::Scalar<int32_t>(ElementType::kS32, value))});
  }
  Instruction* Element(Instruction* tuple, int64_t k) {
    return Add({.opcode = Opcode::kGetTupleElement,
                .operands = {tuple},
                .attributes = {{Attr::kIndex, k}}});
  }
  Instruction* Compare(Instruction* x, Instruction* y, Direction direction) {
    return Add({.opcode = Opcode::kCompare,
                .operands = {x, y},
                .attributes = {{Attr::kDirection, direction}}});
  }

  // A value of the shape: one that exists, young ones more often, or a constant.
  Instruction* Value(const Shape& shape) {
    for (int tries = 0; tries < 8; ++tries) {
      size_t k = Index();
      Instruction* v = values_[Chance(50) ? k : std::max(k, Index())];
      if (v->shape() == shape) return v;
    }
    if (shape == kScalar) return Constant(Pick(0, 3));
    if (Chance(30)) return Count();
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {Constant(Pick(0, 3))},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = shape});
  }
  Instruction* Count() {
    return Add({.opcode = Opcode::kIota,
                .attributes = {{Attr::kIotaDimension, int64_t{0}}},
                .shape = kArray});
  }
  Instruction* Op(const Shape& shape) {
    if (shape == kArray && Chance(40)) {
      // Elements move: not to be done in place.
      std::vector<PaddingDimension> by_one = {{1, -1, 0}};
      return Add({.opcode = Opcode::kPad,
                  .operands = {Value(shape), Value(kScalar)},
                  .attributes = {{Attr::kPadding, by_one}}});
    }
    if (shape == kArray && Chance(10)) {
      // Large for what it is made of, and slow to make.
      Instruction* powers[] = {Value(kScalar), Constant(Pick(2, 9))};
      for (Instruction*& x : powers) {
        x = Add({.opcode = Opcode::kBroadcast,
                 .operands = {x},
                 .attributes = {{Attr::kDimensions, Ints{}}},
                 .shape = shape});
      }
      return Add({.opcode = Opcode::kPower, .operands = {powers[0], powers[1]}});
    }
    static constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply,
                                      Opcode::kMaximum, Opcode::kXor};
    return Add({.opcode = kOps[Pick(0, 4)], .operands = {Value(shape), Value(shape)}});
  }

  // A computation, built by `make` among values of its own.
  template <typename F>
  Computation* Function(const char* name, F&& make) {
    Computation* outer = c_;
    std::vector<Instruction*> outer_values = std::move(values_);
    values_.clear();
    c_ = module_->AddComputation(name);
    Computation* made = c_;
    made->set_root(make());
    c_ = outer;
    values_ = std::move(outer_values);
    return made;
  }
  Instruction* Parameter(const Shape& shape) {
    Instruction* p = Add({.opcode = Opcode::kParameter,
                          .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                          .shape = shape});
    for (size_t k = 0; k < shape.elements().size(); ++k) {
      values_.push_back(Element(p, static_cast<int64_t>(k)));
    }
    return p;
  }

  void Step(int depth) {
    int pick = Pick(0, depth > 0 ? 11 : 3);
    if (pick <= 3) {
      values_.push_back(Op(values_[Index()]->shape()));
    } else if (pick <= 7) {
      While(depth);
    } else if (pick <= 9) {
      Conditional(depth);
    } else if (Chance(80)) {
      CountingLoop();
    } else {
      NestedState();
    }
  }

  void While(int depth) {
    std::vector<Instruction*> initial = {Constant(Pick(0, 2))};
    for (int k = Pick(2, 5); k > 0; --k) {
      initial.push_back(Chance(8) ? Count() : Value(Chance(50) ? kScalar : kArray));
    }
    size_t counter = static_cast<size_t>(Pick(0, static_cast<int>(initial.size()) - 1));
    std::swap(initial[0], initial[counter]);
    // One that runs at most once, whatever it begins with.
    const bool once = Chance(8);
    const int32_t only = Pick(0, 2);
    if (once) initial[counter] = Value(kScalar);
    // Two that begin alike, and may go on so.
    size_t twin = static_cast<size_t>(Pick(0, static_cast<int>(initial.size()) - 1));
    size_t other = (twin + 1) % initial.size();
    const bool twins = Chance(40) && twin != counter && other != counter;
    if (twins) initial[other] = initial[twin];
    Instruction* start = Add({.opcode = Opcode::kTuple, .operands = initial});
    Shape state = start->shape();
    // A tuple is only a name.
    if (Chance(40)) values_.push_back(Element(start, Pick(0, 1)));
    Computation* condition = Function("condition", [&] {
      Instruction* i = Element(Parameter(state), static_cast<int64_t>(counter));
      if (once) return Compare(i, Constant(only), Direction::kEq);
      return Compare(i, Constant(Pick(0, 4)), Direction::kLt);
    });
    Computation* body = Function("body", [&] {
      Parameter(state);
      std::vector<Instruction*> elements = values_;
      for (int steps = Pick(0, 3); steps > 0; --steps) Step(depth - 1);
      std::vector<Instruction*> next;
      for (size_t k = 0; k < elements.size(); ++k) {
        const Shape& shape = elements[k]->shape();
        int pick = Pick(0, 2);
        next.push_back(pick == 0 ? elements[k] : pick == 1 ? Value(shape) : Op(shape));
        // The constant that it begins with.
        if (Chance(10) && initial[k]->IsConstant()) {
          next.back() = Constant(static_cast<int32_t>(initial[k]->literal().AsInt(0)));
        }
      }
      if (twins) {
        std::vector<Instruction*> operands(next[twin]->operands().begin(),
                                           next[twin]->operands().end());
        std::ranges::replace(operands, elements[twin], elements[other]);
        if (next[twin] == elements[twin]) next[other] = elements[other];
        if (IsElementwise(next[twin]->opcode()) && operands.size() == 2) {
          next[other] = Add({.opcode = next[twin]->opcode(), .operands = operands});
        }
      }
      next[counter] =
          once ? Constant(only + 1)
               : Add({.opcode = Opcode::kAdd, .operands = {elements[counter], Constant(1)}});
      return Add({.opcode = Opcode::kTuple, .operands = next});
    });
    auto loop = [&](Instruction* from) {
      Instruction* w =
          Add({.opcode = Opcode::kWhile, .operands = {from}, .called = {condition, body}});
      for (size_t k = 0; k < initial.size(); ++k) {
        if (Chance(30)) values_.push_back(Element(w, static_cast<int64_t>(k)));
      }
      if (c_ == module_->entry()) last_ = w;
      return w;
    };
    Instruction* w = loop(start);
    // The same loop again: from the start, or from where the first one ended.
    if (Chance(25)) loop(Chance(50) ? start : w);
  }

  Instruction* Number(ElementType type, int64_t value) {
    Shape shape = Shape::Scalar(type);
    Literal literal = VisitKernelType(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T>) {
        return Literal::Scalar<T>(type, static_cast<T>(value));
      } else {
        return Literal::ScalarOf(type, static_cast<double>(value));
      }
    });
    return Add({.opcode = Opcode::kConstant,
                .shape = shape,
                .literal = std::make_shared<const Literal>(std::move(literal))});
  }
  Instruction* Convert(Instruction* x, ElementType type) {
    if (x->shape().type() == type) return x;
    return Add({.opcode = Opcode::kConvert, .operands = {x}, .shape = Shape::Scalar(type)});
  }
  static bool Holds(Direction direction, int64_t x, int64_t y) {
    switch (direction) {
      case Direction::kEq:
        return x == y;
      case Direction::kNe:
        return x != y;
      case Direction::kLt:
        return x < y;
      case Direction::kLe:
        return x <= y;
      case Direction::kGt:
        return x > y;
      case Direction::kGe:
        return x >= y;
    }
    return false;
  }
  Direction AnyDirection() {
    static constexpr Direction kAll[] = {Direction::kEq, Direction::kNe, Direction::kLt,
                                         Direction::kLe, Direction::kGt, Direction::kGe};
    return kAll[Pick(0, 5)];
  }

  // Counters of one type that start anywhere and go up or down, also around its ends; what the body
  // makes depends on where they are.
  void CountingLoop() {
    static constexpr ElementType kTypes[] = {
        ElementType::kS8,  ElementType::kU8,  ElementType::kS16, ElementType::kS32,
        ElementType::kU32, ElementType::kS64, ElementType::kU64};
    const ElementType type = kTypes[Pick(0, 6)];
    auto wrapped = [&](int64_t value) {
      return VisitKernelType(type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(static_cast<T>(value));
        return value;
      });
    };
    const int64_t end = IsSigned(type) ? int64_t{1} << (BitWidth(type) - 2) : 0;
    auto anywhere = [&] { return wrapped(Pick(-3, 6) + (Chance(25) ? 2 * end - 2 : 0)); };
    std::vector<int64_t> starts, steps;
    for (int k = Pick(2, 4); k > 0; --k) {
      starts.push_back(anywhere());
      steps.push_back(Chance(60) ? (Chance(70) ? 1 : -1) : Pick(-3, 3));
    }
    Direction direction = AnyDirection();
    int64_t bound = Chance(20) ? anywhere() : wrapped(starts[0] + steps[0] * Pick(-1, 5));
    // How often it runs; where that is too often, a plain loop takes its place.
    constexpr int kMostTrips = 12;
    int trips = 0;
    auto less = [&](int64_t x) {
      if (type != ElementType::kU64) return Holds(direction, x, bound);
      // Orders of numbers from 2^63 on are those of negative ones behind the others.
      return Holds(direction, x ^ INT64_MIN, bound ^ INT64_MIN);
    };
    for (int64_t x = starts[0]; trips <= kMostTrips && less(x); ++trips) {
      x = wrapped(static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(steps[0])));
    }
    if (trips > kMostTrips) {
      starts[0] = 1, steps[0] = 1, direction = Direction::kLe, bound = Pick(0, 4);
    }
    const size_t count = starts.size();
    std::vector<Instruction*> initial;
    // Only the first one must begin as a constant.
    for (size_t k = 0; k < count; ++k) {
      initial.push_back(k > 0 && Chance(15) ? Convert(Value(kScalar), type)
                                            : Number(type, starts[k]));
    }
    // One that follows the first, and a sum.
    const int64_t ahead = Pick(0, 2);
    initial.push_back(Number(type, wrapped(starts[0] - (Chance(80) ? steps[0] - ahead : 0))));
    initial.push_back(Value(kScalar));
    Instruction* start = Add({.opcode = Opcode::kTuple, .operands = initial});
    const Shape state = start->shape();
    const bool turned = Chance(30), both = Chance(20);
    Computation* condition = Function("counts", [&] {
      Instruction* s = Parameter(state);
      Instruction *i = Element(s, 0), *n = Number(type, bound);
      Direction flipped = direction;
      if (direction == Direction::kLt) flipped = Direction::kGt;
      if (direction == Direction::kGt) flipped = Direction::kLt;
      if (direction == Direction::kLe) flipped = Direction::kGe;
      if (direction == Direction::kGe) flipped = Direction::kLe;
      Instruction* p = turned ? Compare(n, i, flipped) : Compare(i, n, direction);
      if (!both) return p;
      Instruction* sum = Element(s, static_cast<int64_t>(count) + 1);
      return Add({.opcode = Opcode::kAnd,
                  .operands = {p, Compare(sum, Constant(Pick(0, 500)), Direction::kLt)}});
    });
    Computation* body = Function("counted", [&] {
      Instruction* s = Parameter(state);
      std::vector<Instruction*> now, next;
      for (size_t k = 0; k < count + 2; ++k) now.push_back(Element(s, static_cast<int64_t>(k)));
      auto counter = [&] { return now[static_cast<size_t>(Pick(0, static_cast<int>(count)))]; };
      Instruction* sum = now.back();
      for (int k = Pick(1, 3); k > 0; --k) {
        Instruction *x = counter(), *c = Number(type, anywhere()), *y = x;
        if (Chance(40)) {
          y = Add({.opcode = Chance(50) ? Opcode::kAdd : Opcode::kSubtract, .operands = {x, c}});
        }
        Instruction* d = Number(type, anywhere());
        static constexpr Opcode kOps[] = {Opcode::kMaximum, Opcode::kMinimum, Opcode::kRemainder,
                                          Opcode::kMultiply, Opcode::kDivide};
        switch (Pick(0, 2)) {
          case 0:
            y = Add({.opcode = Opcode::kSelect,
                     .operands = {Compare(y, Chance(80) ? d : counter(), AnyDirection()), y, c}});
            break;
          case 1:
            y = Add({.opcode = kOps[Pick(0, 4)], .operands = {y, d}});
            if (Chance(50)) y = Add({.opcode = Opcode::kMaximum, .operands = {y, c}});
            break;
          case 2:
            y = Add({.opcode = Opcode::kClamp, .operands = {c, y, d}});
            break;
        }
        sum = Add({.opcode = Opcode::kMultiply, .operands = {sum, Constant(3)}});
        sum = Add({.opcode = Opcode::kAdd, .operands = {sum, Convert(y, ElementType::kS32)}});
      }
      for (size_t k = 0; k < count; ++k) {
        Instruction* step = Number(type, steps[k]);
        next.push_back(
            Add({.opcode = Opcode::kAdd,
                 .operands = Chance(80) ? std::vector{now[k], step} : std::vector{step, now[k]}}));
      }
      next.push_back(now[0]);
      if (ahead) {
        next.back() = Add({.opcode = Opcode::kAdd, .operands = {now[0], Number(type, ahead)}});
      }
      next.push_back(sum);
      return Add({.opcode = Opcode::kTuple, .operands = next});
    });
    Instruction* w =
        Add({.opcode = Opcode::kWhile, .operands = {start}, .called = {condition, body}});
    if (c_ == module_->entry()) last_ = w;
    for (size_t k = 0; k < initial.size(); ++k) {
      if (k + 1 < initial.size() && Chance(40)) continue;
      values_.push_back(Convert(Element(w, static_cast<int64_t>(k)), ElementType::kS32));
    }
  }

  // A state of tuples in each other.
  void NestedState() {
    auto tuple = [&](std::vector<Instruction*> elements) {
      return Add({.opcode = Opcode::kTuple, .operands = std::move(elements)});
    };
    Instruction* start = tuple({tuple({Value(kArray), tuple({Constant(0)})}), Value(kScalar),
                                tuple({Value(kArray), Value(kScalar)})});
    const Shape state = start->shape();
    Computation* condition = Function("deep", [&] {
      Instruction* s = Add({.opcode = Opcode::kParameter,
                            .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                            .shape = state});
      return Compare(Element(Element(Element(s, 0), 1), 0), Constant(Pick(0, 3)), Direction::kLt);
    });
    const bool swapped = Chance(50), kept = Chance(50);
    Computation* body = Function("deeper", [&] {
      Instruction* s = Parameter(state);
      Instruction *x = Element(Element(s, 0), 0), *last = Element(s, 2), *y = Element(last, 0);
      Instruction* i = Element(Element(Element(s, 0), 1), 0);
      values_ = {x, y, Element(s, 1), Element(last, 1), i};
      Instruction* next = Add({.opcode = Opcode::kAdd, .operands = {i, Constant(1)}});
      return tuple({tuple({swapped ? y : Op(kArray), tuple({next})}), Op(kScalar),
                    kept ? last : tuple({x, Op(kScalar)})});
    });
    Instruction* w =
        Add({.opcode = Opcode::kWhile, .operands = {start}, .called = {condition, body}});
    if (c_ == module_->entry()) last_ = w;
    values_.push_back(Element(w, 1));
    values_.push_back(Element(Element(w, 2), 0));
    if (Chance(50)) values_.push_back(Element(Element(w, 0), 0));
  }

  void Conditional(int depth) {
    Instruction* index;
    int branches = 2;
    if (Chance(50)) {
      index = Chance(30) ? Compare(Constant(Pick(0, 1)), Constant(0), Direction::kGt)
                         : Compare(Value(kScalar), Value(kScalar), Direction::kLt);
    } else {
      index = Chance(30) ? Constant(Pick(-1, 3)) : Value(kScalar);
      branches = Pick(1, 3);
    }
    std::vector<Shape> results;
    for (int k = Pick(1, 3); k > 0; --k) results.push_back(Chance(50) ? kScalar : kArray);
    std::vector<Instruction*> operands = {index};
    std::vector<Computation*> called;
    for (int b = 0; b < branches; ++b) {
      if (b > 0 && Chance(25)) {
        // The branch before again, on the same operand or another one.
        called.push_back(called.back());
        std::vector<Instruction*> elements;
        for (const Instruction* element : operands.back()->operands()) {
          elements.push_back(Value(element->shape()));
        }
        operands.push_back(Chance(60) ? operands.back()
                                      : Add({.opcode = Opcode::kTuple, .operands = elements}));
        continue;
      }
      std::vector<Instruction*> elements;
      for (int k = Pick(1, 3); k > 0; --k) {
        elements.push_back(Value(Chance(50) ? kScalar : kArray));
        // What the branch may know.
        if (Chance(20) && index->shape() == kScalar) elements.back() = index;
        if (Chance(10)) elements.back() = Constant(Pick(0, 3));
        // What it may make itself.
        if (Chance(25)) elements.back() = Op(elements.back()->shape());
      }
      operands.push_back(Add({.opcode = Opcode::kTuple, .operands = elements}));
      const Shape shape = operands.back()->shape();
      called.push_back(Function("branch", [&] {
        Parameter(shape);
        for (int steps = Pick(0, 2); steps > 0; --steps) Step(depth - 1);
        std::vector<Instruction*> made;
        for (const Shape& s : results) made.push_back(Chance(60) ? Value(s) : Op(s));
        return Add({.opcode = Opcode::kTuple, .operands = made});
      }));
    }
    Instruction* c = Add({.opcode = Opcode::kConditional, .operands = operands, .called = called});
    for (size_t k = 0; k < results.size(); ++k) {
      if (Chance(60)) values_.push_back(Element(c, static_cast<int64_t>(k)));
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<ir::Module> module_;
  Computation* c_ = nullptr;
  Instruction* last_ = nullptr;
  std::vector<Instruction*> values_;
};

}  // namespace

std::unique_ptr<ir::Module> ControlFodder(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace kiln::testing
