// Ops that run in sessions only, on values of their actual sizes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/status.h"
#include "interp/options.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// The tuple of values, inverse and counts of a vector.
Literal EvaluateUnique(const Literal& operand);

// The indices of the elements that are not zero: s64[count, rank].
Literal EvaluateNonzero(const Literal& operand);

// Fails unless the mask has the operand's first dimensions.
Result<Literal> EvaluateBooleanMask(const ir::Instruction& instruction, const Literal& operand,
                                    const Literal& mask);

// The text of a print: its message and the values of the data, or else of the operand.
std::string PrintedText(const ir::Instruction& print, std::span<const Literal* const> operands);

// Fails if the assertion does, with its message and the values of the data.
Status CheckAssertion(const ir::Instruction& assertion, std::span<const Literal* const> operands);

// The call of a host callback from the view of the function's owner: with the operands' actual
// shapes, and the results' declared ones, whose bounded dimensions are the function's choice.
CalledFunction HostCallbackOf(const ir::Instruction& callback,
                              std::span<const Literal* const> operands);
// Fails unless a function's results are of the declared shapes.
Status CheckResults(const ir::Instruction& callback, std::span<const Literal> results);

// Values of variables by name.
using Variables = std::map<std::string, Literal>;

// Reads, assigns or adds to a variable, by the opcode: its value afterwards, valid until it is
// assigned again. `operand` is null for a read.
Result<const Literal*> EvaluateVariableOp(const ir::Instruction& instruction,
                                          const Literal* operand, Variables& variables);

}  // namespace kiln::interp
