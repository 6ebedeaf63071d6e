// When results of two ways to run a program may be held against each other.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::fuzz {

// The most work of the evaluator that a program is worth.
inline constexpr int64_t kMaxWork = 3'000'000;

// Whether a program says what its results are. It does not where it sorts by what is no strict weak
// order, where it folds windows by what is not associative, and where it checks its own values
// (check.*): those fail where roundings differ.
bool IsDetermined(const ir::Module& module);

// "" where a result is the expected one, as near as rounding lets it be; else what differs.
// `ill_conditioned`, unless null, is set where they differ by no more than what inputs a few steps
// of their type away make of it, or by the bits of NaNs, or where NaNs have been sorted by what is
// no order of NaNs.
std::string Compare(const ir::Module& module, const std::vector<Literal>& arguments,
                    const Literal& expected, const Literal& actual, bool* ill_conditioned);

}  // namespace kiln::fuzz
