// Trip counts, induction variables and invariants of loops.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

// Whether `i` is an element of the tuple, taken by get-tuple-element.
bool IsElementOf(const Instruction* i, const Instruction* tuple);

// Whether every iteration leaves element k of the loop's state as it is.
bool IsInvariant(const Instruction& loop, int64_t k);

// A scalar integer of a loop's state to which every iteration adds a constant.
struct InductionVariable {
  int64_t element = 0;
  int64_t step = 0;
  std::optional<int64_t> start;  // where it is a constant
};

// From `low` to `high`, both included.
struct Interval {
  int64_t low = 0, high = 0;
};

// A scalar integer constant as a number; none where an s64 cannot hold it.
std::optional<int64_t> IntegerOf(const Instruction* x);

// The values of an integer type, as far as an s64 holds them.
Interval RangeOf(ElementType type);

struct Induction {
  std::vector<InductionVariable> variables;
  // How often the loop runs, where that is known.
  std::optional<int64_t> trip_count;
  // The values of a variable when an iteration begins, by element, where they are known.
  std::unordered_map<int64_t, Interval> ranges;
};

// Of a loop whose state is a tuple.
Induction InductionOf(const Instruction& loop);

}  // namespace kiln::ir
