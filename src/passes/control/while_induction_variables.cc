#include <algorithm>
#include <limits>

#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Induction;
using ir::InductionVariable;
using ir::Instruction;
using ir::Interval;

// A scalar integer; overflow wraps.
Instruction* Number(const Shape& shape, uint64_t value, Instruction* at) {
  Literal literal = VisitKernelType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      return Literal::Scalar<T>(shape.type(), static_cast<T>(value));
    } else {
      return Literal(Shape::Scalar(shape.type()));
    }
  });
  return at->parent()->Create({.opcode = Opcode::kConstant,
                               .shape = shape,
                               .literal = std::make_shared<const Literal>(std::move(literal))},
                              at);
}

Instruction* Binary(Opcode opcode, Instruction* x, Instruction* y, Instruction* at) {
  return at->parent()->Create({.opcode = opcode, .operands = {x, y}, .shape = x->shape()}, at);
}

// The users of element k of a tuple.
std::vector<Instruction*> ReadersOf(const Instruction* tuple, int64_t k) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (user->opcode() == Opcode::kGetTupleElement && user->attributes().Int(Attr::kIndex) == k &&
        (!user->users().empty() || user->IsRoot())) {
      elements.push_back(user);
    }
  }
  return elements;
}

// get-tuple-element(while(x), k) => get-tuple-element(x, k) + n * c   where the loop runs n times,
// and each iteration adds c to the element   (integers)
bool KnowLastValues(Instruction* loop, const Induction& induction) {
  if (!induction.trip_count) return false;
  bool changed = false;
  for (const InductionVariable& variable : induction.variables) {
    for (Instruction* element : ReadersOf(loop, variable.element)) {
      uint64_t sum =
          static_cast<uint64_t>(*induction.trip_count) * static_cast<uint64_t>(variable.step);
      Instruction* last;
      if (variable.start) {
        last = Number(element->shape(), static_cast<uint64_t>(*variable.start) + sum, element);
      } else {
        last = Binary(Opcode::kAdd, ElementOf(loop->operand(0), variable.element, element),
                      Number(element->shape(), sum, element), element);
      }
      loop->parent()->ReplaceAllUses(element, last);
      changed = true;
    }
  }
  return changed;
}

// The ranges of a body's scalar integers, derived from the loop's induction variables.
class Intervals {
 public:
  Intervals(const Computation& body, const Induction& induction) {
    for (Instruction* i : body.instructions()) {
      if (!i->shape().is_array() || i->shape().rank() != 0 || !IsInteger(i->shape().type())) {
        continue;
      }
      std::optional<Interval> interval = Evaluate(*i, body.parameter(0), induction);
      if (interval) intervals_[i] = *interval;
    }
  }

  std::optional<Interval> Of(const Instruction* i) const {
    auto it = intervals_.find(i);
    return it == intervals_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  static std::optional<Interval> IfHeld(int64_t low, int64_t high, ElementType type) {
    Interval range = ir::RangeOf(type);
    if (low < range.low || high > range.high) return std::nullopt;
    return Interval{low, high};
  }

  std::optional<Interval> Evaluate(const Instruction& i, const Instruction* state,
                                   const Induction& induction) const {
    if (std::optional<int64_t> value = ir::IntegerOf(&i)) return Interval{*value, *value};
    if (ir::IsElementOf(&i, state)) {
      auto it = induction.ranges.find(i.attributes().Int(Attr::kIndex));
      return it == induction.ranges.end() ? std::nullopt : std::optional(it->second);
    }
    std::vector<Interval> operands;
    for (const Instruction* operand : i.operands()) {
      if (i.opcode() == Opcode::kSelect && operand == i.operand(0)) {
        operands.push_back({});
        continue;
      }
      auto it = intervals_.find(operand);
      if (it == intervals_.end()) return std::nullopt;
      operands.push_back(it->second);
    }
    const ElementType type = i.shape().type();
    int64_t low, high;
    switch (i.opcode()) {
      case Opcode::kConvert:
        return IfHeld(operands[0].low, operands[0].high, type);
      case Opcode::kAdd:
        if (__builtin_add_overflow(operands[0].low, operands[1].low, &low) ||
            __builtin_add_overflow(operands[0].high, operands[1].high, &high)) {
          return std::nullopt;
        }
        return IfHeld(low, high, type);
      case Opcode::kSubtract:
        if (__builtin_sub_overflow(operands[0].low, operands[1].high, &low) ||
            __builtin_sub_overflow(operands[0].high, operands[1].low, &high)) {
          return std::nullopt;
        }
        return IfHeld(low, high, type);
      case Opcode::kMultiply:
        if (operands[0].low < 0 || operands[1].low < 0 ||
            __builtin_mul_overflow(operands[0].low, operands[1].low, &low) ||
            __builtin_mul_overflow(operands[0].high, operands[1].high, &high)) {
          return std::nullopt;
        }
        return IfHeld(low, high, type);
      case Opcode::kMaximum:
        return Interval{std::max(operands[0].low, operands[1].low),
                        std::max(operands[0].high, operands[1].high)};
      case Opcode::kMinimum:
        return Interval{std::min(operands[0].low, operands[1].low),
                        std::min(operands[0].high, operands[1].high)};
      case Opcode::kSelect:
        return Interval{std::min(operands[1].low, operands[2].low),
                        std::max(operands[1].high, operands[2].high)};
      case Opcode::kRemainder:
        if (operands[0].low < 0 || operands[1].low <= 0) return std::nullopt;
        return Interval{0, std::min(operands[0].high, operands[1].high - 1)};
      case Opcode::kDivide:
        if (operands[0].low < 0 || operands[1].low <= 0) return std::nullopt;
        return Interval{operands[0].low / operands[1].high, operands[0].high / operands[1].low};
      default:
        return std::nullopt;
    }
  }

  std::unordered_map<const Instruction*, Interval> intervals_;
};

// The result of a comparison for all values of two intervals, if it is unique.
std::optional<bool> Decided(Direction direction, const Interval& x, const Interval& y) {
  const bool below = x.high<y.low, above = x.low> y.high;
  const bool not_above = x.high <= y.low, not_below = x.low >= y.high;
  auto of = [](bool yes, bool no) { return yes || no ? std::optional(yes) : std::nullopt; };
  switch (direction) {
    case Direction::kEq:
      return of(not_above && not_below, below || above);
    case Direction::kNe:
      return of(below || above, not_above && not_below);
    case Direction::kLt:
      return of(below, not_below);
    case Direction::kLe:
      return of(not_above, above);
    case Direction::kGt:
      return of(above, not_above);
    case Direction::kGe:
      return of(not_below, below);
  }
  return std::nullopt;
}

// The value of an instruction of a loop's body by its operands' ranges: one of them, or a pred.
struct Outcome {
  std::optional<int64_t> operand;
  std::optional<bool> truth;
};

Outcome OutcomeOf(const Instruction& i, const Intervals& intervals) {
  const bool is_clamp = i.opcode() == Opcode::kClamp;
  if (i.operand_count() != 2 && !is_clamp) return {};
  std::optional<Interval> x = intervals.Of(i.operand(0)), y = intervals.Of(i.operand(1));
  if (!x || !y) return {};
  auto which = [](bool first, bool second) -> Outcome {
    if (!first && !second) return {};
    return {.operand = first ? 0 : 1, .truth = {}};
  };
  switch (i.opcode()) {
    // compare(x, y) => true or false   where the first and the last value of induction variables
    // decide it, in the loop's body   (integers)
    case Opcode::kCompare:
      if (i.attributes().Has(Attr::kOrderType)) return {};
      return {.operand = {},
              .truth = Decided(i.attributes().DirectionOf(Attr::kDirection), *x, *y)};
    // max(x, y) => x,  min(x, y) => y,  x % y => x,  clamp(l, x, h) => x   likewise
    case Opcode::kMaximum:
      return which(x->low >= y->high, y->low >= x->high);
    case Opcode::kMinimum:
      return which(x->high <= y->low, y->high <= x->low);
    case Opcode::kRemainder:
      return which(x->low >= 0 && x->high < y->low, false);
    case Opcode::kClamp: {
      std::optional<Interval> h = intervals.Of(i.operand(2));
      return which(false, h && x->high <= y->low && y->high <= h->low);
    }
    default:
      return {};
  }
}

bool DecideByRange(Instruction* loop, const Induction& induction) {
  if (induction.ranges.empty()) return false;
  auto decided = [](const Computation& body, const Intervals& intervals) {
    std::vector<std::pair<Instruction*, Outcome>> found;
    for (Instruction* i : body.instructions()) {
      if (!i->shape().is_array() || i->shape().rank() != 0 || i->users().empty()) continue;
      Outcome outcome = OutcomeOf(*i, intervals);
      if (outcome.operand || outcome.truth) found.emplace_back(i, outcome);
    }
    return found;
  };
  if (decided(*loop->called(1), Intervals(*loop->called(1), induction)).empty()) return false;
  Computation* body = OwnCallee(loop, 1);
  for (auto& [i, outcome] : decided(*body, Intervals(*body, induction))) {
    // Operands may have been decided before.
    Instruction* value = outcome.operand ? i->operand(*outcome.operand) : nullptr;
    if (outcome.truth) {
      value = body->Create({.opcode = Opcode::kConstant,
                            .shape = i->shape(),
                            .literal = std::make_shared<const Literal>(
                                Literal::ScalarOf(ElementType::kPred, *outcome.truth))},
                           i);
    }
    body->ReplaceAllUses(i, value);
  }
  return true;
}

// Whether the induction variable has other users than its own update.
bool IsRead(const Instruction& loop, const InductionVariable& variable) {
  if (!ReadersOf(&loop, variable.element).empty() ||
      !ReadersOf(loop.called(0)->parameter(0), variable.element).empty()) {
    return true;
  }
  const Computation& body = *loop.called(1);
  const Instruction* next = body.root()->operand(variable.element);
  for (const Instruction* element : ReadersOf(body.parameter(0), variable.element)) {
    bool only_next = element->users().size() == 1 && element->users()[0] == next &&
                     next->users().size() == 1 && next->users()[0] == body.root() &&
                     std::ranges::count(body.root()->operands(), next) == 1;
    if (!only_next) return true;
  }
  return false;
}

// get-tuple-element(x, k) => get-tuple-element(x, j) + c   (or c minus it) where x is a loop's
// state, elements j and k begin as constants, and their steps are equal or opposite (integers)
bool MergeInductionVariables(Instruction* loop, const Induction& induction) {
  bool changed = false;
  const Instruction* test = loop->called(0)->parameter(0);
  std::vector<const InductionVariable*> bases;
  // Elements read by the condition stay anyway.
  std::vector<const InductionVariable*> order;
  for (const InductionVariable& c : induction.variables) order.push_back(&c);
  std::ranges::stable_partition(
      order, [&](const InductionVariable* c) { return !ReadersOf(test, c->element).empty(); });
  auto shape_of = [&](const InductionVariable& c) {
    return loop->shape().elements()[static_cast<size_t>(c.element)];
  };
  for (const InductionVariable* k : order) {
    if (!k->start) continue;
    auto base = std::ranges::find_if(bases, [&](const InductionVariable* j) {
      return shape_of(*j) == shape_of(*k) &&
             (j->step == k->step ||
              static_cast<uint64_t>(j->step) + static_cast<uint64_t>(k->step) == 0);
    });
    if (base == bases.end()) {
      bases.push_back(k);
      continue;
    }
    if (!IsRead(*loop, *k)) continue;
    const InductionVariable& j = **base;
    const bool same = j.step == k->step;
    const uint64_t from = static_cast<uint64_t>(*j.start), to = static_cast<uint64_t>(*k->start);
    for (int64_t callee : {0, 1, 2}) {
      auto tuple_of = [&] { return callee == 2 ? loop : loop->called(callee)->parameter(0); };
      if (ReadersOf(tuple_of(), k->element).empty()) continue;
      if (callee < 2) OwnCallee(loop, callee);
      Instruction* tuple = tuple_of();
      for (Instruction* reader : ReadersOf(tuple, k->element)) {
        Instruction* other = ElementOf(tuple, j.element, reader);
        Instruction* value =
            same ? Binary(Opcode::kAdd, other, Number(reader->shape(), to - from, reader), reader)
                 : Binary(Opcode::kSubtract, Number(reader->shape(), to + from, reader), other,
                          reader);
        tuple->parent()->ReplaceAllUses(reader, value);
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace

Result<bool> SimplifyInductionVariables(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* c : module.CalleesFirst()) {
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (i->opcode() != Opcode::kWhile || !i->shape().is_tuple()) continue;
      const Induction induction = ir::InductionOf(*i);
      if (induction.variables.empty()) continue;
      changed |= KnowLastValues(i, induction);
      changed |= DecideByRange(i, induction);
      changed |= MergeInductionVariables(i, induction);
    }
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
