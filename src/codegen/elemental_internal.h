// Shared declarations of the files that emit elementwise ops.
#pragma once

#include <functional>
#include <vector>

#include "codegen/elemental.h"

namespace kiln::codegen::elemental {

// The result of `body` for the operands, or a call of a shared function: elemental_shared.cc.
Result<llvm::Value*> EmitShared(
    Builder& b, const kernel::Node& node, std::span<llvm::Value* const> operands,
    std::span<const ElementType> types, ElementType data,
    const std::function<Result<llvm::Value*>(Builder&, std::span<llvm::Value* const>)>& body);
llvm::Value* SplatShared(Builder& b, llvm::Value* scalar, unsigned width);

// The scalar type, or a vector of it as wide as `like`.
llvm::Type* WithScalar(llvm::Type* scalar, llvm::Type* like);
// The integers of the same size.
llvm::Type* IntOf(llvm::Type* type);
// Whether a condition holds in any lane.
llvm::Value* Any(Builder& b, llvm::Value* condition);

llvm::Value* EmitMaximum(Builder& b, llvm::Value* x, llvm::Value* y, ElementType type,
                         MathOptions math);
llvm::Value* EmitMinimum(Builder& b, llvm::Value* x, llvm::Value* y, ElementType type,
                         MathOptions math);
llvm::Value* EmitIntDivide(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* EmitIntRemainder(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* EmitIntPower(Builder& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* EmitReducePrecision(Builder& b, llvm::Value* x, ElementType type,
                                 int64_t exponent_bits, int64_t mantissa_bits, MathOptions options);

// --- f16 and bf16, which are f32 in registers (elemental_half.cc)
// From and to the bits in memory. A value is packed exactly: ops have rounded it.
llvm::Value* UnpackHalf(Builder& b, llvm::Value* bits, ElementType type, MathOptions options);
llvm::Value* PackHalf(Builder& b, llvm::Value* x, ElementType type, MathOptions options);
// The operand of arithmetic, which gives a NaN for any NaN: without the code by which UnpackHalf
// keeps a NaN's bits.
llvm::Value* WithoutNanBits(llvm::Value* x);
// The nearest value of the half type, of an f32.
// A result that `is_arithmetic` is a sum, difference, product, quotient or square root of values of
// the type: a NaN among them is an operand, made quiet, or the machine's own.
llvm::Value* RoundToHalf(Builder& b, llvm::Value* x, ElementType type, MathOptions options,
                         bool is_arithmetic = false);
// f64, and integers of 32 or 64 bits, on the way to a half type: what RoundToHalf gives of these is
// what rounding once gives. Integers of 64 bits become f64, the others f32.
llvm::Value* NarrowToOdd(Builder& b, llvm::Value* x);
llvm::Value* IntToSticky(Builder& b, llvm::Value* x, bool is_signed);

}  // namespace kiln::codegen::elemental
