// Arguments for modules, and comparison of what came out.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"
#include "tensor/sample.h"

namespace kiln::testing {

// Seeded values of the parameters, whatever reads them: indices may be out of range.
std::vector<Literal> RandomArguments(const ir::Module& module, uint64_t seed);

// "" where every element agrees: integers and preds exactly, floats within `relative` of the larger
// magnitude (or `absolute`), NaN with NaN; else what differs first.
std::string Difference(const Literal& expected, const Literal& actual, double relative,
                       double absolute);
// The same for results of a module, each with a bound for both; where values of a half type went
// into a result, the bound is some steps of that type, if that is more. Floats of 8 bits and fewer
// are the same numbers, with the same zeros, where nothing that they are made of may round
// differently; else at most a step of their type apart, where what overflows is a step above the
// largest, or a step more than the bound.
std::string DifferenceOf(const ir::Module& module, const Literal& expected, const Literal& actual,
                         double bound);

}  // namespace kiln::testing
