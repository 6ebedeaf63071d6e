// Ops that are functions outside generated code: decompositions, transforms, custom calls. Each is
// a step of its own, on arrays in row-major order, or in the layouts of a typed custom call.
#pragma once

#include <string>

#include "ir/ir.h"
#include "tensor/call_signature.h"

namespace kiln::ir {

bool IsHostCall(const Instruction& instruction);

// The name of the function: of a custom call its target, else one of the library's own, which begin
// with "kiln.".
std::string HostCallTarget(const Instruction& instruction);
// Whether the function takes and gives arrays in the layouts of the instruction's shape and those
// of its operands: a custom call of XLA's typed convention. Otherwise all are row-major.
bool HasCallLayouts(const Instruction& call);
// Whether all arrays in the shape are.
bool IsRowMajor(const Shape& shape);

CallSignature CallSignatureOf(const Instruction& instruction);

}  // namespace kiln::ir
