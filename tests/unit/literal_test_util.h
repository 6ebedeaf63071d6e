// Arguments for modules, and comparison of what came out.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::testing {

// Seeded values of a shape: floats in [-2, 2) (a few of them 0 and 1), integers in [-9, 9].
Literal RandomLiteral(const Shape& shape, uint64_t seed);
std::vector<Literal> RandomArguments(const ir::Module& module, uint64_t seed);

// "" where every element agrees: integers and preds exactly, floats within `relative` of the larger
// magnitude (or `absolute`), NaN with NaN; else what differs first.
std::string Difference(const Literal& expected, const Literal& actual, double relative,
                       double absolute);

}  // namespace kiln::testing
