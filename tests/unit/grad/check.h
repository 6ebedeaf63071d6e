// Derivatives of HLO text, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grad/options.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::grad {

// Expects that testing::CheckDerivatives finds nothing wrong with a module of f64 and c128: with
// its tangents, its cotangents and the derivatives of these, at random numbers. The first arguments
// may be given. Symbols get these sizes after differentiation.
void ExpectDerivatives(std::string_view text, std::vector<Literal> arguments = {},
                       const SymbolSizes& sizes = {}, const Options& options = {});

// The same of the lines of an entry computation, with the computations add, mul, max, min, last,
// sub (of f64), cadd (of c128) and less and more (of f64, to a pred) before it.
void ExpectDerivativesOf(std::string_view lines, std::vector<Literal> arguments = {},
                         const SymbolSizes& sizes = {});

// The gradients of a sum of the values by all parameters that have some, at these arguments.
std::vector<Literal> GradientsAt(const ir::Module& module, const std::vector<Literal>& arguments);
std::vector<Literal> GradientsAt(std::string_view lines, const std::vector<Literal>& arguments);
// The tangents of the values, by those of these parameters.
std::vector<Literal> TangentsAt(const ir::Module& module, std::vector<Literal> arguments,
                                const std::vector<Literal>& tangents);

// The error for such gradients of a module, or "OK".
std::string GradientError(std::string_view text);

std::vector<ir::Instruction*> FloatParametersOf(const ir::Computation& entry);

Literal Doubles(std::vector<int64_t> dimensions, std::vector<double> values);

}  // namespace kiln::grad
