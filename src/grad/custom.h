// Derivatives by rules of the user's own, of functions and of custom calls.
#pragma once

#include <string_view>

#include "grad/forward.h"
#include "grad/reverse.h"

namespace kiln::grad {

// A function's backward computation takes the arrays of the function's parameters and of its
// result, and a cotangent for each array of the result that has a derivative. It returns a
// cotangent for each array of the parameters that has one: a tuple, or the only one. A custom call
// has such a computation, too, for its operands.

// INVALID_ARGUMENT where a computation is not of that form.
Status CheckRule(std::span<const Shape> parameters, const Shape& result, const ProgramShape& rule);

// The target of a custom call that marks a function as one with a rule: the root, which returns its
// operand and names the backward computation. Nothing is called.
inline constexpr std::string_view kRuleTarget = "CustomGradient";
void SetRule(ir::Computation& function, ir::Computation& rule);
// Null: its ops have the derivatives.
ir::Computation* RuleOf(const ir::Computation& function);

// Forward mode transposes the backward computation, at the cotangent 0.
Derivative RuleForward(Forward& forward, ir::Instruction* op, ir::Computation& rule);
void RuleReverse(Reverse& reverse, ir::Instruction* op, ir::Computation& rule,
                 const Derivative& cotangent);

}  // namespace kiln::grad
