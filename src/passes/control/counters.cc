#include "passes/control/counters.h"

#include <algorithm>
#include <limits>

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool IsElementOf(const Instruction* i, const Instruction* tuple) {
  return i->opcode() == Opcode::kGetTupleElement && i->operand(0) == tuple;
}

// What is added to a number of the type: what is half of it or more takes away.
std::optional<int64_t> StepOf(const Instruction* x) {
  if (!x->IsConstant()) return std::nullopt;
  const int64_t unused = 64 - BitWidth(x->shape().type());
  return static_cast<int64_t>(static_cast<uint64_t>(x->literal().AsInt(0)) << unused) >> unused;
}

bool IsScalarInteger(const Shape& shape) {
  return shape.is_array() && shape.rank() == 0 && IsInteger(shape.type()) &&
         IsKernelType(shape.type());
}

// Elements that follow a counter: each is what the counter was an iteration ago, give or take, and
// begins as if it had been so before.
void AppendFollowers(const Instruction& loop, std::vector<Counter>& counters) {
  const Computation& body = *loop.called(1);
  const Instruction* initial = loop.operand(0);
  if (initial->opcode() != Opcode::kTuple) return;
  const std::vector<Counter> leaders = counters;
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
    for (const Counter& leader : leaders) {
      if (leader.element != next->attributes().Int(Attr::kIndex) || leader.element == k) continue;
      int64_t before;
      if (leader.start && !__builtin_sub_overflow(*leader.start, leader.step, &before) &&
          !__builtin_add_overflow(before, ahead, &before) && before == *start) {
        counters.push_back({.element = k, .step = leader.step, .start = start});
      }
    }
  }
}

std::vector<Counter> CountersOf(const Instruction& loop) {
  std::vector<Counter> counters;
  const Computation& body = *loop.called(1);
  if (body.root()->opcode() != Opcode::kTuple) return counters;
  const Instruction* initial = loop.operand(0);
  for (int64_t k = 0; k < body.root()->operand_count(); ++k) {
    const Instruction* next = body.root()->operand(k);
    if (next->opcode() != Opcode::kAdd || !IsScalarInteger(next->shape())) continue;
    for (int64_t o : {0, 1}) {
      const Instruction* now = next->operand(o);
      std::optional<int64_t> step = StepOf(next->operand(1 - o));
      if (!step || !IsElementOf(now, body.parameter(0)) ||
          now->attributes().Int(Attr::kIndex) != k) {
        continue;
      }
      Counter counter{.element = k, .step = *step};
      if (initial->opcode() == Opcode::kTuple) counter.start = IntegerOf(initial->operand(k));
      counters.push_back(counter);
      break;
    }
  }
  AppendFollowers(loop, counters);
  return counters;
}

// `counter direction bound`, which holds whenever an iteration begins.
struct Bound {
  const Counter* counter;
  Direction direction;
  std::optional<int64_t> value;
  bool is_alone;  // and nothing else is asked
};

void AppendBounds(const Instruction* test, bool is_alone, const Instruction* state,
                  const std::vector<Counter>& counters, std::vector<Bound>& bounds) {
  if (test->opcode() == Opcode::kAnd) {
    for (const Instruction* part : test->operands()) {
      AppendBounds(part, false, state, counters, bounds);
    }
    return;
  }
  if (test->opcode() != Opcode::kCompare || test->attributes().Has(Attr::kOrderType)) return;
  Direction direction = test->attributes().DirectionOf(Attr::kDirection);
  for (int64_t o : {0, 1}) {
    const Instruction* now = test->operand(o);
    if (!IsElementOf(now, state)) continue;
    auto counter = std::ranges::find_if(counters, [&](const Counter& c) {
      return c.element == now->attributes().Int(Attr::kIndex);
    });
    if (counter == counters.end()) continue;
    bounds.push_back({&*counter, o == 0 ? direction : Flipped(direction),
                      IntegerOf(test->operand(1 - o)), is_alone});
  }
}

// How often the loop runs that goes on while the bound holds.
std::optional<int64_t> TripsOf(const Bound& bound, const Interval& type) {
  const int64_t step = bound.counter->step;
  if (!bound.value || !bound.counter->start || step == 0) return std::nullopt;
  const int64_t start = *bound.counter->start;
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
    // Past it from the beginning; a counter that must meet the bound goes round.
    return bound.direction == Direction::kNe ? std::nullopt : std::optional<int64_t>(0);
  }
  if (step == -1 && way == std::numeric_limits<int64_t>::min()) return std::nullopt;
  int64_t trips = way / step;
  if (way % step != 0) {
    if (bound.direction == Direction::kNe) return std::nullopt;
    ++trips;
  }
  // The last value must be one of the type, or the counter goes round.
  int64_t last;
  if (__builtin_mul_overflow(trips, step, &last) || __builtin_add_overflow(start, last, &last)) {
    return std::nullopt;
  }
  return last < type.low || last > type.high ? std::nullopt : std::optional(trips);
}

// The values of a counter when an iteration begins, which the bound keeps from going round.
std::optional<Interval> RangeUnder(const Bound& bound, const Interval& type) {
  const int64_t step = bound.counter->step;
  if (!bound.counter->start || step == 0) return std::nullopt;
  const int64_t start = *bound.counter->start;
  const bool up = bound.direction == Direction::kLt || bound.direction == Direction::kLe;
  const bool down = bound.direction == Direction::kGt || bound.direction == Direction::kGe;
  if (up ? step < 0 : !down || step > 0) return std::nullopt;
  const bool strict = bound.direction == Direction::kLt || bound.direction == Direction::kGt;
  // The outermost value for which the bound, whatever it is, can hold.
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
  // The first iteration is one of those for which the bound holds, or there is none.
  return up ? Interval{start, std::max(start, end)} : Interval{std::min(start, end), start};
}

}  // namespace

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

Counting CountingOf(const Instruction& loop) {
  Counting result;
  result.counters = CountersOf(loop);
  if (result.counters.empty()) return result;
  auto type_of = [&](const Counter& c) {
    return loop.shape().elements()[static_cast<size_t>(c.element)].type();
  };
  std::vector<Bound> bounds;
  const Computation& condition = *loop.called(0);
  AppendBounds(condition.root(), true, condition.parameter(0), result.counters, bounds);
  for (const Bound& bound : bounds) {
    const Interval type = RangeOf(type_of(*bound.counter));
    if (bound.is_alone) result.trips = TripsOf(bound, type);
    // Values above those of an s64 would be out of sight.
    if (type_of(*bound.counter) == ElementType::kU64) continue;
    if (std::optional<Interval> range = RangeUnder(bound, type)) {
      auto [it, is_new] = result.ranges.emplace(bound.counter->element, *range);
      if (!is_new) {
        it->second = {std::max(it->second.low, range->low), std::min(it->second.high, range->high)};
      }
    }
  }
  if (!result.trips || *result.trips == 0) return result;
  // All of them count as often.
  for (const Counter& c : result.counters) {
    int64_t last;
    if (!c.start || __builtin_mul_overflow(*result.trips - 1, c.step, &last) ||
        __builtin_add_overflow(*c.start, last, &last)) {
      continue;
    }
    const Interval type = RangeOf(type_of(c));
    if (last < type.low || last > type.high) continue;
    result.ranges[c.element] = {std::min(*c.start, last), std::max(*c.start, last)};
  }
  return result;
}

}  // namespace kiln::passes
