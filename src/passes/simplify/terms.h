// The parts of rules: new instructions, and questions about present ones.
#pragma once

#include <optional>

#include "ir/builder.h"

namespace kiln::passes::simplify {

// A new instruction before `at`, of `at`'s shape, or of another one.
ir::Instruction* Make(ir::Instruction* at, Opcode opcode, std::vector<ir::Instruction*> operands,
                      Attributes attributes = {});
ir::Instruction* MakeShaped(ir::Instruction* at, const Shape& shape, Opcode opcode,
                            std::vector<ir::Instruction*> operands, Attributes attributes = {},
                            std::vector<ir::Computation*> called = {});
// A reduce like `at`, of other operands along other dimensions.
ir::Instruction* MakeReduce(ir::Instruction* at, const Shape& shape, ir::Instruction* operand,
                            ir::Instruction* init, Ints dimensions);

// Shapes of intermediate values are row-major.
Shape ShapeOf(ElementType type, std::span<const int64_t> dims);
Shape WithType(const Shape& shape, ElementType type);

// The scalar at every element of x, if x is a constant or a broadcast of one.
std::optional<Literal> SplatOf(const ir::Instruction* x);
// The scalar repeated by x: x itself, the operand of a broadcast, or a new scalar if x is an array
// of one repeated constant. Null otherwise.
ir::Instruction* ScalarOf(ir::Instruction* at, ir::Instruction* x);
// Whether x is a constant or a broadcast of one.
bool IsConstantTerm(const ir::Instruction* x);
// Whether x depends on constants alone, and will be folded. False where the answer takes long.
bool WillBeConstant(const ir::Instruction* x);
// Whether both have the same elements: they are one instruction, or repeat the same scalar.
bool IsSame(const ir::Instruction* a, const ir::Instruction* b);
bool IsSigned(const ir::Instruction* x);
bool IsInt(const ir::Instruction* x);
bool IsFloat(const ir::Instruction* x);
bool IsPred(const ir::Instruction* x);
// Whether every bit of x is set: -1, the largest unsigned value, true.
bool IsAllOnes(const ir::Instruction* x);
// Whether x is the least or greatest value of its type; of floats the infinities.
bool IsLowest(const ir::Instruction* x);
bool IsHighest(const ir::Instruction* x);
// Whether x repeats one scalar.
bool IsSpread(const ir::Instruction* x);
// Whether x has one use and is not the root.
bool IsUsedOnce(const ir::Instruction* x);

// A scalar repeated to a shape: itself for a scalar shape, a reshape for one of one element.
ir::Instruction* Spread(ir::Instruction* at, const Shape& shape, ir::Instruction* scalar);
ir::Instruction* Splat(ir::Instruction* at, const Shape& shape, Literal scalar);
ir::Instruction* SplatNumber(ir::Instruction* at, const Shape& shape, double value);
ir::Instruction* SplatAllOnes(ir::Instruction* at, const Shape& shape);
// An op on constant terms, of `a`'s shape; its value, if each term repeats one scalar.
ir::Instruction* OnConstants(ir::Instruction* at, Opcode opcode, ir::Instruction* a,
                             ir::Instruction* b = nullptr);

// Whether x op x is x for every value of the type.
bool IsIdempotent(Opcode opcode, ElementType type);

// The place in `to` of each dimension of `from`, if `to` only adds dimensions of size 1.
std::optional<Ints> InsertedOnes(std::span<const int64_t> from, std::span<const int64_t> to);

// The op of a reduction of one array, if its computation is one op.
std::optional<Opcode> ReducerOf(const ir::Instruction& reduce);
// Whether a value has no effect among others that are folded from init.
bool IsNeutral(const ir::Instruction* value, const ir::Instruction* init, Opcode reducer);
// The sum of x along dimensions, beginning at +0.
ir::Instruction* MakeSum(ir::Instruction* at, const Shape& shape, ir::Instruction* x,
                         Ints dimensions);

// n, where each element of the constant integer x is 2^n.
std::optional<int64_t> PowerOfTwo(const ir::Instruction* x);
// The bias of integers before a shift right by n > 0 bits, for rounding towards zero: 2^n - 1 where
// x is negative, else 0.
ir::Instruction* RoundingBias(ir::Instruction* at, ir::Instruction* x, int64_t n);

}  // namespace kiln::passes::simplify
