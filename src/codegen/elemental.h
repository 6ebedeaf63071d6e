// One scalar operation of a kernel as LLVM IR, on scalars or, lane by lane, on vectors. Independent
// of CPU or GPU: emitted code lowers on both, and no value is undefined or poison for any operands.
#pragma once

#include <span>

#include "base/status.h"
#include "codegen/math/math.h"
#include "kernel/kernel.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

using Builder = llvm::IRBuilder<>;

// The type of values in registers (pred is i1; f16 and bf16 are float, which holds a value of the
// type) and in memory (pred is i8; f16 and bf16 are i16).
llvm::Type* RegisterType(llvm::LLVMContext& context, ElementType type);
llvm::Type* MemoryType(llvm::LLVMContext& context, ElementType type);
// Between the two, for scalars and vectors.
llvm::Value* FromMemory(Builder& b, llvm::Value* value, ElementType type, MathOptions options);
llvm::Value* ToMemory(Builder& b, llvm::Value* value, ElementType type, MathOptions options);

// A scalar constant; of a vector, see Splat.
llvm::Constant* ConstantOf(llvm::LLVMContext& context, const Literal& literal);
// The value of type `like` whose lanes are all `scalar`; the scalar itself where like is a scalar.
llvm::Value* Splat(Builder& b, llvm::Value* scalar, int64_t width);
// A number as a constant of the (scalar or vector) type.
llvm::Constant* Number(llvm::Type* type, double value);

// The neutral element of a combiner that has one; of a float sum it is -0, which changes nothing.
llvm::Constant* IdentityOf(llvm::LLVMContext& context, kernel::Combiner::Kind kind,
                           ElementType type);
// One step of a combiner that is not general.
llvm::Value* EmitCombine(Builder& b, kernel::Combiner::Kind kind, ElementType type, llvm::Value* x,
                         llvm::Value* y, MathOptions math);
// x * y + z, rounded once; for machines that have it.
llvm::Value* EmitFma(Builder& b, llvm::Value* x, llvm::Value* y, llvm::Value* z);

// Maxima (or minima) of numbers: of a NaN they make any value. Many can be folded, and NaNs sought
// beside them, in half the time.
bool HasExtremumOfNumbers(ElementType type);
llvm::Value* EmitExtremumOfNumbers(Builder& b, llvm::Value* x, llvm::Value* y, bool maximum,
                                   MathOptions math);

// Converts by the rules of the op convert.
llvm::Value* EmitConvert(Builder& b, llvm::Value* value, ElementType from, ElementType to,
                         MathOptions options);

// The quotients of many numbers by one, with the same bits as divisions, which take four times as
// long: the reciprocal is made once. The builder ends in another block than it began in. Needs
// fused multiply-adds.
struct Reciprocal {
  llvm::Value* divisor;  // a scalar
  llvm::Value* inverse;  // 1 / divisor
  llvm::Value* rest;     // what rounding took from the inverse
  llvm::Value* usable;   // whether the inverse serves for operands of everyday sizes
};
Reciprocal EmitReciprocal(Builder& b, llvm::Value* divisor);
// What is known of dividends: signs, and whether all are of everyday sizes.
enum class Dividends : uint8_t { kAny, kNotNegative, kIntegers };
std::vector<llvm::Value*> EmitDivide(Builder& b, std::vector<llvm::Value*> dividends,
                                     const Reciprocal& reciprocal,
                                     Dividends known = Dividends::kAny);

// The same for bf16, by two products and without branches: `inverse` is 1 / (divisor * scale),
// where the scale is a power of two.
struct Bf16Reciprocal {
  llvm::Value *inverse, *scale;
};
Bf16Reciprocal EmitBf16Reciprocal(Builder& b, llvm::Value* divisor);
// A quotient, rounded.
llvm::Value* EmitDivide(Builder& b, llvm::Value* dividend, const Bf16Reciprocal& reciprocal,
                        MathOptions options);

// Two results of several values change places where the second's number `by`, an integer, is less.
void EmitOrder(Builder& b, ElementType type, size_t by, std::vector<llvm::Value*>& x,
               std::vector<llvm::Value*>& y);

// The result of an op in registers, rounded to its type: f16 and bf16 are kept as floats.
llvm::Value* RoundedTo(Builder& b, llvm::Value* value, ElementType type, MathOptions options);

// An elementwise op: the operands are all scalars or all vectors of one width. The builder may end
// in another block than it began in. UNIMPLEMENTED, naming op and type, where there is no code.
Result<llvm::Value*> EmitOp(Builder& b, const kernel::Node& node,
                            std::span<llvm::Value* const> operands,
                            std::span<const ElementType> types, MathOptions math);

// Elementary functions become calls of shared functions of the module: large programs compile in
// half the time, and each use takes a few cycles more.
void ShareFunctions(llvm::Module& module);

}  // namespace kiln::codegen
