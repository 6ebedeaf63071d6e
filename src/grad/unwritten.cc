// Rules that are not written yet.
#include "base/strings.h"
#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

// It needs the function of order 0, which is no op.
template <>
Instruction* Partial<Opcode::kBesselI1e>(Builder& b, Instruction* f, int64_t, Instruction*) {
  b.Fail(Unimplemented("'", f->name(), "': the derivative of ", OpcodeName(f->opcode()),
                       " is not implemented"));
  return nullptr;
}

}  // namespace kiln::grad
