// Derivatives of HLO text against differences of values, in double precision.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grad/options.h"
#include "tensor/literal.h"

namespace kiln::grad {

// Differentiates the values of a module's entry, an array or a tuple, by its parameters, of f64 and
// c128, at random numbers; expects
//   forward mode to be what differences say, in a random direction
//   <cotangent, forward(direction)> = <reverse(cotangent), direction>
// and the same of reverse mode's results as a function of parameters and cotangents. The first
// arguments may be given. Symbols get these sizes after differentiation.
void ExpectDerivatives(std::string_view text, std::vector<Literal> arguments = {},
                       const SymbolSizes& sizes = {}, const Options& options = {});

// The same of the lines of an entry computation, with the computations add, mul, max, min, last,
// sub (of f64), cadd (of c128) and less and more (of f64, to a pred) before it.
void ExpectDerivativesOf(std::string_view lines, std::vector<Literal> arguments = {},
                         const SymbolSizes& sizes = {});

// The gradients of a sum of the values by all parameters, at these arguments.
std::vector<Literal> GradientsAt(std::string_view lines, const std::vector<Literal>& arguments);

// The error for such gradients of a module, or "OK".
std::string GradientError(std::string_view text);

Literal Doubles(std::vector<int64_t> dimensions, std::vector<double> values);

}  // namespace kiln::grad
