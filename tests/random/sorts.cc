#include "random/sorts.h"

#include "random/ops.h"
#include "random/types.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x,
            const std::function<bool(const Instruction*)>& exact)
      : RandomMaker(source), x_(x), exact_(exact) {}

  RandomOp TopK() {
    int64_t size = x_->shape().dim(x_->shape().rank() - 1);
    Instruction* top = Add({.opcode = Opcode::kTopK,
                            .operands = {WithoutNans(source_, x_)},
                            .attributes = {{Attr::kK, Chance(20) ? size : Pick(0, size)}}});
    if (Chance(50)) top->mutable_attributes().Set(Attr::kLargest, true);
    return {{Element(top, 0), Element(top, 1)}, {x_}};
  }

  // The first elements of a sort along the last dimension, and where they were.
  RandomOp FirstOfSort() {
    Computation& c = source_.computation;
    const int64_t last = x_->shape().rank() - 1, size = x_->shape().dim(last);
    const ElementType type = x_->shape().type();
    Instruction* iota = AddTo(c, {.opcode = Opcode::kIota,
                                  .attributes = {{Attr::kIotaDimension, last}},
                                  .shape = Shape(ElementType::kS32, x_->shape().dimensions())});
    operands_ = {x_};
    if (Chance(70)) operands_.insert(operands_.begin() + Pick(0, 1), iota);
    Computation* before = source_.module.AddComputation("first");
    Instruction* sides[2] = {};
    for (size_t k = 0; k < operands_.size(); ++k) {
      for (int side : {0, 1}) {
        Instruction* p = AddTo(
            *before, {.opcode = Opcode::kParameter,
                      .attributes = {{Attr::kParameterNumber, static_cast<int64_t>(2 * k) + side}},
                      .shape = Shape::Scalar(operands_[k]->shape().type())});
        if (operands_[k] == x_) sides[side] = p;
      }
    }
    if (Chance(30)) std::swap(sides[0], sides[1]);
    Instruction* compare =
        Compare(*before, sides[0], sides[1], Chance(50) ? Direction::kLt : Direction::kGt);
    if (IsFloat(type) && Chance(80)) {
      compare->mutable_attributes().Set(Attr::kOrderType, std::string("TOTALORDER"));
    }
    before->set_root(compare);
    Instruction* sort = AddTo(c, {.opcode = Opcode::kSort,
                                  .operands = operands_,
                                  .attributes = {{Attr::kDimensions, Ints{last}}},
                                  .called = {before}});
    RandomOp op;
    op.data = {operands_.begin(), operands_.end()};
    for (size_t k = 0; k < operands_.size(); ++k) {
      Instruction* sorted = operands_.size() == 1 ? sort : Element(sort, static_cast<int64_t>(k));
      std::vector<SliceDimension> slices;
      for (const Dimension& d : sorted->shape().dimensions()) slices.push_back({0, d.size(), 1});
      slices.back().limit = Pick(0, std::min<int64_t>(size, 4));
      op.results.push_back(AddTo(c, {.opcode = Opcode::kSlice,
                                     .operands = {sorted},
                                     .attributes = {{Attr::kSlice, std::move(slices)}}}));
    }
    return op;
  }

  RandomOp Sort() {
    operands_ = {x_};
    for (Instruction* v : source_.values) {
      bool fits =
          operands_.size() < 4 && v->shape().is_array() && v->shape().SameDimensions(x_->shape());
      if (fits && Chance(25)) operands_.push_back(v);
    }
    if (IsComplex(x_->shape().type()) || Chance(25)) {
      operands_.push_back(
          Add({.opcode = Opcode::kIota,
               .attributes = {{Attr::kIotaDimension, Pick(0, x_->shape().rank() - 1)}},
               .shape = Shape(ElementType::kS32, x_->shape().dimensions())}));
    }
    Computation* before = Comparator();
    Instruction* sort =
        Add({.opcode = Opcode::kSort,
             .operands = operands_,
             .attributes = {{Attr::kDimensions, Ints{Pick(0, x_->shape().rank() - 1)}}},
             .called = {before}});
    if (Chance(30)) sort->mutable_attributes().Set(Attr::kIsStable, true);
    RandomOp op;
    op.data = {operands_.begin(), operands_.end()};
    if (operands_.size() == 1) {
      op.results = {sort};
      return op;
    }
    for (size_t k = 0; k < operands_.size(); ++k) {
      // Some of them nobody needs.
      if (Chance(70)) op.results.push_back(Element(sort, static_cast<int64_t>(k)));
    }
    return op;
  }

 private:
  Instruction* Compare(Computation& c, Instruction* a, Instruction* b, Direction direction) {
    Attributes order = {{Attr::kDirection, direction}};
    if (HasSeveralNans(a->shape().type())) {
      a = WithoutNan(c, a);
      b = WithoutNan(c, b);
    }
    // Those of narrow types may be NaNs, and so may be what was one of them.
    const ElementType type = a->shape().type();
    const bool may_be_nan = IsNarrowFloat(type) || (source_.rare_types && IsFloat(type));
    if (may_be_nan && direction != Direction::kEq) {
      order.Set(Attr::kOrderType, std::string("TOTALORDER"));
    }
    return AddTo(c, {.opcode = Opcode::kCompare, .operands = {a, b}, .attributes = order});
  }

  static Instruction* WithoutNan(Computation& c, Instruction* x) {
    const Shape& scalar = x->shape();
    Instruction* number = AddTo(c, {.opcode = Opcode::kCompare,
                                    .operands = {x, x},
                                    .attributes = {{Attr::kDirection, Direction::kEq}}});
    Instruction* one =
        AddTo(c, {.opcode = Opcode::kConstant,
                  .shape = scalar,
                  .literal = std::make_shared<const Literal>(Literal::ScalarOf(scalar.type(), 1))});
    return AddTo(c, {.opcode = Opcode::kSelect, .operands = {number, x, one}});
  }

  // By one operand, by a formula of one, or by one and where those are equal by another.
  Computation* Comparator() {
    Computation* c = source_.module.AddComputation("before");
    std::vector<std::pair<Instruction*, Instruction*>> pairs;
    std::vector<size_t> keys;
    for (size_t k = 0; k < operands_.size(); ++k) {
      Instruction* sides[2];
      for (int side : {0, 1}) {
        int64_t number = static_cast<int64_t>(2 * k) + side;
        sides[side] = AddTo(*c, {.opcode = Opcode::kParameter,
                                 .attributes = {{Attr::kParameterNumber, number}},
                                 .shape = Shape::Scalar(operands_[k]->shape().type())});
      }
      pairs.push_back({sides[0], sides[1]});
      const bool ordered = !IsComplex(operands_[k]->shape().type());
      const bool counts = operands_[k]->opcode() == Opcode::kIota;
      if (ordered && (k == 0 || counts || exact_(operands_[k]))) keys.push_back(k);
    }
    auto key = [&] { return keys[static_cast<size_t>(Pick(0, std::ssize(keys) - 1))]; };
    auto [a, b] = pairs[key()];
    Direction direction = Chance(50) ? Direction::kLt : Direction::kGt;
    if (Chance(30) && !IsPred(a->shape().type())) {
      a = AddTo(*c, {.opcode = Opcode::kAbs, .operands = {a}});
      b = AddTo(*c, {.opcode = Opcode::kAbs, .operands = {b}});
    }
    if (Chance(20)) std::swap(a, b);
    Instruction* before = Compare(*c, a, b, direction);
    if (Chance(25)) {
      auto [d, e] = pairs[key()];
      before = AddTo(*c, {.opcode = Opcode::kSelect,
                          .operands = {Compare(*c, a, b, Direction::kEq),
                                       Compare(*c, d, e, Direction::kLt), before}});
    }
    c->set_root(before);
    return c;
  }

  Instruction* x_;
  const std::function<bool(const Instruction*)>& exact_;
  std::vector<Instruction*> operands_;
};

}  // namespace

RandomOp RandomSort(const RandomSource& source, Instruction* x,
                    const std::function<bool(const Instruction*)>& exact) {
  if (x->shape().rank() == 0) return {};
  uint64_t kind = IsComplex(x->shape().type()) ? 2 : source.random() % 5;
  Generator generator(source, x, exact);
  return kind == 0 ? generator.TopK() : kind == 1 ? generator.FirstOfSort() : generator.Sort();
}

}  // namespace kiln::testing
