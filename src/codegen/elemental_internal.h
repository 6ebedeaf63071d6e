// What the files that emit elementwise ops share.
#pragma once

#include <functional>
#include <vector>

#include "codegen/elemental.h"

namespace kiln::codegen::elemental {

// The scalar type, or a vector of it as wide as `like`.
llvm::Type* WithScalar(llvm::Type* scalar, llvm::Type* like);
// The integers of the same size.
llvm::Type* IntOf(llvm::Type* type);
// Whether a condition holds in any lane.
llvm::Value* Any(Builder& b, llvm::Value* condition);
// while (condition(values)) body(values); the values after it. The condition is a scalar.
std::vector<llvm::Value*> EmitWhile(
    Builder& b, std::vector<llvm::Value*> init,
    const std::function<llvm::Value*(const std::vector<llvm::Value*>&)>& condition,
    const std::function<void(std::vector<llvm::Value*>&)>& body);

llvm::Value* EmitMaximum(Builder& b, llvm::Value* x, llvm::Value* y, ElementType type);
llvm::Value* EmitMinimum(Builder& b, llvm::Value* x, llvm::Value* y, ElementType type);
llvm::Value* EmitIntDivide(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* EmitIntRemainder(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* EmitIntPower(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
}  // namespace kiln::codegen::elemental
