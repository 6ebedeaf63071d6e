#include "ir/analysis/trip_count.h"

#include <algorithm>
#include <limits>

namespace kiln::ir {
namespace {

// A number of the type's range as a signed one: half of the range and more are negative.
int64_t SignedOf(uint64_t number, ElementType type) {
  const int64_t unused = 64 - BitWidth(type);
  return static_cast<int64_t>(number << unused) >> unused;
}

std::optional<int64_t> StepOf(const Instruction* x) {
  if (!x->IsConstant()) return std::nullopt;
  return SignedOf(static_cast<uint64_t>(x->literal().AsInt(0)), x->shape().type());
}

bool IsScalarInteger(const Shape& shape) {
  return shape.is_array() && shape.rank() == 0 && IsInteger(shape.type()) &&
         IsKernelType(shape.type());
}

// Elements that follow an induction variable: each is its value of an iteration ago, give or take a
// constant, and begins as if it had been so before.
void AppendFollowers(const Instruction& loop, std::vector<InductionVariable>& variables) {
  const Computation& body = *loop.called(1);
  const Instruction* initial = loop.operand(0);
  if (initial->opcode() != Opcode::kTuple) return;
  const std::vector<InductionVariable> leaders = variables;
  for (int64_t k = 0; k < body.root()->operand_count(); ++k) {
    const Instruction* next = body.root()->operand(k);
    if (!IsScalarInteger(next->shape())) continue;
    int64_t ahead = 0;
    if (next->opcode() == Opcode::kAdd && next->operand(1)->IsConstant()) {
      ahead = *StepOf(next->operand(1));
      next = next->operand(0);
    }
    std::optional<int64_t> start = IntegerOf(initial->operand(k));
    if (!start || !IsElementOf(next, body.parameter(0))) continue;
    for (const InductionVariable& leader : leaders) {
      if (leader.element != next->attributes().Int(Attr::kIndex) || leader.element == k) continue;
      int64_t before;
      if (leader.start && !__builtin_sub_overflow(*leader.start, leader.step, &before) &&
          !__builtin_add_overflow(before, ahead, &before) && before == *start) {
        variables.push_back({.element = k, .step = leader.step, .start = start});
      }
    }
  }
}

// `next` without the constants added to it, which are the step.
const Instruction* WithoutSteps(const Instruction* next, int64_t& step) {
  uint64_t sum = 0;
  while (next->opcode() == Opcode::kAdd) {
    const bool is_second = next->operand(1)->IsConstant();
    const std::optional<int64_t> by = StepOf(next->operand(is_second ? 1 : 0));
    if (!by) break;
    sum += static_cast<uint64_t>(*by);
    next = next->operand(is_second ? 0 : 1);
  }
  step = SignedOf(sum, next->shape().type());
  return next;
}

std::vector<InductionVariable> VariablesOf(const Instruction& loop) {
  std::vector<InductionVariable> variables;
  const Computation& body = *loop.called(1);
  if (body.root()->opcode() != Opcode::kTuple) return variables;
  const Instruction* initial = loop.operand(0);
  for (int64_t k = 0; k < body.root()->operand_count(); ++k) {
    const Instruction* next = body.root()->operand(k);
    if (!IsScalarInteger(next->shape())) continue;
    InductionVariable variable{.element = k};
    const Instruction* now = WithoutSteps(next, variable.step);
    if (now == next || !IsElementOf(now, body.parameter(0)) ||
        now->attributes().Int(Attr::kIndex) != k) {
      continue;
    }
    if (initial->opcode() == Opcode::kTuple) variable.start = IntegerOf(initial->operand(k));
    variables.push_back(variable);
  }
  AppendFollowers(loop, variables);
  return variables;
}

// `variable direction bound`, which holds whenever an iteration begins.
struct Bound {
  const InductionVariable* variable;
  Direction direction;
  std::optional<int64_t> value;
  bool is_alone;  // and nothing else is asked
};

void AppendBounds(const Instruction* test, bool is_alone, const Instruction* state,
                  const std::vector<InductionVariable>& variables, std::vector<Bound>& bounds) {
  if (test->opcode() == Opcode::kAnd) {
    for (const Instruction* part : test->operands()) {
      AppendBounds(part, false, state, variables, bounds);
    }
    return;
  }
  if (test->opcode() != Opcode::kCompare || test->attributes().Has(Attr::kOrderType)) return;
  Direction direction = test->attributes().DirectionOf(Attr::kDirection);
  for (int64_t o : {0, 1}) {
    const Instruction* now = test->operand(o);
    if (!IsElementOf(now, state)) continue;
    auto variable = std::ranges::find_if(variables, [&](const InductionVariable& v) {
      return v.element == now->attributes().Int(Attr::kIndex);
    });
    if (variable == variables.end()) continue;
    bounds.push_back({&*variable, o == 0 ? direction : Flipped(direction),
                      IntegerOf(test->operand(1 - o)), is_alone});
  }
}

// How often the loop runs that goes on while the bound holds.
std::optional<int64_t> TripCountOf(const Bound& bound, const Interval& type) {
  const int64_t step = bound.variable->step;
  if (!bound.value || !bound.variable->start || step == 0) return std::nullopt;
  const int64_t start = *bound.variable->start;
  // The first value for which it does not hold lies on this side of `end`, or is it.
  int64_t end = *bound.value;
  switch (bound.direction) {
    case Direction::kLt:
      if (step < 0) return std::nullopt;
      break;
    case Direction::kGt:
      if (step > 0) return std::nullopt;
      break;
    case Direction::kLe:
      if (step < 0 || __builtin_add_overflow(end, 1, &end)) return std::nullopt;
      break;
    case Direction::kGe:
      if (step > 0 || __builtin_sub_overflow(end, 1, &end)) return std::nullopt;
      break;
    case Direction::kNe:
      break;
    case Direction::kEq:
      return std::nullopt;
  }
  int64_t way;
  if (__builtin_sub_overflow(end, start, &way)) return std::nullopt;
  if (way == 0) return 0;
  if ((way < 0) != (step < 0)) {
    // Past it from the beginning; a variable that must meet the bound goes round.
    return bound.direction == Direction::kNe ? std::nullopt : std::optional<int64_t>(0);
  }
  if (step == -1 && way == std::numeric_limits<int64_t>::min()) return std::nullopt;
  int64_t trips = way / step;
  if (way % step != 0) {
    if (bound.direction == Direction::kNe) return std::nullopt;
    ++trips;
  }
  // The last value must be one of the type, or the variable goes round.
  int64_t last;
  if (__builtin_mul_overflow(trips, step, &last) || __builtin_add_overflow(start, last, &last)) {
    return std::nullopt;
  }
  return last < type.low || last > type.high ? std::nullopt : std::optional(trips);
}

// The values of a variable when an iteration begins, which the bound keeps from going round.
std::optional<Interval> RangeUnder(const Bound& bound, const Interval& type) {
  const int64_t step = bound.variable->step;
  if (!bound.variable->start || step == 0) return std::nullopt;
  const int64_t start = *bound.variable->start;
  const bool up = bound.direction == Direction::kLt || bound.direction == Direction::kLe;
  const bool down = bound.direction == Direction::kGt || bound.direction == Direction::kGe;
  if (up ? step < 0 : !down || step > 0) return std::nullopt;
  const bool strict = bound.direction == Direction::kLt || bound.direction == Direction::kGt;
  // The outermost value for which any bound can hold.
  int64_t end = bound.value.value_or(up ? type.high : type.low);
  if (strict) {
    if (up ? __builtin_sub_overflow(end, 1, &end) : __builtin_add_overflow(end, 1, &end)) {
      return std::nullopt;
    }
  }
  // From there the next value must be one of the type still.
  int64_t next;
  if (__builtin_add_overflow(end, step, &next) || next < type.low || next > type.high) {
    return std::nullopt;
  }
  // The bound holds in the first iteration, or there is none.
  return up ? Interval{start, std::max(start, end)} : Interval{std::min(start, end), start};
}

}  // namespace

bool IsElementOf(const Instruction* i, const Instruction* tuple) {
  return i->opcode() == Opcode::kGetTupleElement && i->operand(0) == tuple;
}

bool IsInvariant(const Instruction& loop, int64_t k) {
  const Instruction *root = loop.called(1)->root(), *state = loop.called(1)->parameter(0);
  if (root == state) return true;
  return root->opcode() == Opcode::kTuple && IsElementOf(root->operand(k), state) &&
         root->operand(k)->attributes().Int(Attr::kIndex) == k;
}

Interval RangeOf(ElementType type) {
  return VisitKernelType(type, [](auto zero) -> Interval {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
      return {static_cast<int64_t>(std::numeric_limits<T>::min()),
              static_cast<int64_t>(
                  std::min<uint64_t>(static_cast<uint64_t>(std::numeric_limits<T>::max()), kMost))};
    }
    return {};
  });
}

std::optional<int64_t> IntegerOf(const Instruction* x) {
  if (!x->IsConstant() || !IsScalarInteger(x->shape())) return std::nullopt;
  int64_t value = x->literal().AsInt(0);
  if (x->shape().type() == ElementType::kU64 && value < 0) return std::nullopt;
  return value;
}

Induction InductionOf(const Instruction& loop) {
  Induction result;
  result.variables = VariablesOf(loop);
  if (result.variables.empty()) return result;
  auto type_of = [&](const InductionVariable& v) {
    return loop.shape().elements()[static_cast<size_t>(v.element)].type();
  };
  std::vector<Bound> bounds;
  const Computation& condition = *loop.called(0);
  AppendBounds(condition.root(), true, condition.parameter(0), result.variables, bounds);
  for (const Bound& bound : bounds) {
    const Interval type = RangeOf(type_of(*bound.variable));
    if (bound.is_alone) result.trip_count = TripCountOf(bound, type);
    // Values above an s64 are not supported.
    if (type_of(*bound.variable) == ElementType::kU64) continue;
    if (std::optional<Interval> range = RangeUnder(bound, type)) {
      auto [it, is_new] = result.ranges.emplace(bound.variable->element, *range);
      if (!is_new) {
        it->second = {std::max(it->second.low, range->low), std::min(it->second.high, range->high)};
      }
    }
  }
  if (!result.trip_count || *result.trip_count == 0) return result;
  // All of them count as often.
  for (const InductionVariable& v : result.variables) {
    int64_t last;
    if (!v.start || __builtin_mul_overflow(*result.trip_count - 1, v.step, &last) ||
        __builtin_add_overflow(*v.start, last, &last)) {
      continue;
    }
    const Interval type = RangeOf(type_of(v));
    if (last < type.low || last > type.high) continue;
    result.ranges[v.element] = {std::min(*v.start, last), std::max(*v.start, last)};
  }
  return result;
}

}  // namespace kiln::ir
