// Ops that are functions outside generated code: decompositions, transforms, custom calls. Each is
// a step of its own, on arrays in row-major order.
#pragma once

#include <string>

#include "ir/ir.h"
#include "tensor/call_signature.h"

namespace kiln::ir {

bool IsHostCall(const Instruction& instruction);

// The name of the function: of a custom call its target, else one of the library's own, which begin
// with "kiln.".
std::string HostCallTarget(const Instruction& instruction);
CallSignature CallSignatureOf(const Instruction& instruction);

}  // namespace kiln::ir
