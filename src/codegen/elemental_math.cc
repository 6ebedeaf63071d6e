// Transcendental ops, by the math library.
#include "base/strings.h"
#include "codegen/elemental_internal.h"

namespace kiln::codegen::elemental {

Result<llvm::Value*> EmitTranscendental(Builder& b, Opcode opcode, ElementType type,
                                        llvm::Value* x) {
  return Unimplemented(OpcodeName(opcode), ": no compiled code for ", TypeName(type));
}

Result<llvm::Value*> EmitFloatPower(Builder& b, ElementType type, llvm::Value* x, llvm::Value* y) {
  return Unimplemented("power: no compiled code for ", TypeName(type));
}

}  // namespace kiln::codegen::elemental
