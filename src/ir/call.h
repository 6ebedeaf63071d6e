// Ops that are functions outside generated code: decompositions, transforms, custom calls. Each is
// a step of its own, on arrays in row-major order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "tensor/call_signature.h"

namespace kiln::ir {

bool IsCall(const Instruction& instruction);

// The name of the function: of a custom call its target, else one of the library's own, which begin
// with "kiln.".
std::string CallTarget(const Instruction& instruction);
CallSignature CallSignatureOf(const Instruction& instruction);

// An array of the result that is the memory of an operand's array, by their leaves.
struct CallAlias {
  int64_t output = 0, operand = 0, leaf = 0;
};
std::vector<CallAlias> CallAliases(const Instruction& call);

// The same by places in the signature: of the result's array and of the operand's.
std::vector<std::pair<size_t, size_t>> AliasedArrays(const Instruction& call);

// The operand, an array, in whose memory leaf `output` of the call's result is meant to be, or -1.
int64_t AliasedOperand(const Instruction& call, int64_t output);

// Whether the function may find an operand, an array, in the memory of leaf `output` of its result.
bool MayShareInCall(const Instruction& call, int64_t operand, int64_t output);

}  // namespace kiln::ir
