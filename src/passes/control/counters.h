// Loops that count: how often they run, and from where to where their counters go.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// A scalar integer of a loop's state to which every iteration adds a constant.
struct Counter {
  int64_t element = 0;
  int64_t step = 0;
  std::optional<int64_t> start;  // where it is a constant
};

// From `low` to `high`, both included.
struct Interval {
  int64_t low = 0, high = 0;
};

// A scalar integer constant as a number; none where an s64 cannot hold it.
std::optional<int64_t> IntegerOf(const ir::Instruction* x);

// The values of an integer type, as far as an s64 holds them.
Interval RangeOf(ElementType type);

struct Counting {
  std::vector<Counter> counters;
  // How often the loop runs, where that is known.
  std::optional<int64_t> trips;
  // What values a counter has when an iteration begins, by element, where that is known.
  std::unordered_map<int64_t, Interval> ranges;
};

// Of a loop whose state is a tuple.
Counting CountingOf(const ir::Instruction& loop);

}  // namespace kiln::passes
