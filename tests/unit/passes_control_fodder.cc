#include <algorithm>
#include <random>

#include "base/strings.h"
#include "passes_fodder.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

// Everything is an s32 or an array of three: exact, so that no pass may change a bit.
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
    return Add({.opcode = Opcode::kBroadcast,
                .operands = {Constant(Pick(0, 3))},
                .attributes = {{Attr::kDimensions, Ints{}}},
                .shape = shape});
  }
  Instruction* Op(const Shape& shape) {
    if (shape == kArray && Chance(40)) {
      // Elements move: not to be done in place.
      std::vector<PaddingDimension> by_one = {{1, -1, 0}};
      return Add({.opcode = Opcode::kPad,
                  .operands = {Value(shape), Value(kScalar)},
                  .attributes = {{Attr::kPadding, by_one}}});
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
    int pick = Pick(0, depth > 0 ? 9 : 3);
    if (pick <= 3) {
      values_.push_back(Op(values_[Index()]->shape()));
    } else if (pick <= 7) {
      While(depth);
    } else {
      Conditional(depth);
    }
  }

  void While(int depth) {
    std::vector<Instruction*> initial = {Constant(Pick(0, 2))};
    for (int k = Pick(2, 5); k > 0; --k) {
      initial.push_back(Value(Chance(50) ? kScalar : kArray));
    }
    size_t counter = static_cast<size_t>(Pick(0, static_cast<int>(initial.size()) - 1));
    std::swap(initial[0], initial[counter]);
    Instruction* start = Add({.opcode = Opcode::kTuple, .operands = initial});
    Shape state = start->shape();
    // A tuple is only a name.
    if (Chance(40)) values_.push_back(Element(start, Pick(0, 1)));
    Computation* condition = Function("condition", [&] {
      Instruction* i = Element(Parameter(state), static_cast<int64_t>(counter));
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
      }
      next[counter] = Add({.opcode = Opcode::kAdd, .operands = {elements[counter], Constant(1)}});
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
