// Ops and types that random modules choose from.
#pragma once

#include "ops/op.h"

namespace kiln::testing {

// The types of new values; the more common ones more often.
inline constexpr ElementType kValueTypes[] = {
    ElementType::kF32, ElementType::kF32,  ElementType::kF32, ElementType::kF64, ElementType::kF64,
    ElementType::kF16, ElementType::kBF16, ElementType::kS32, ElementType::kS32, ElementType::kS64,
    ElementType::kS8,  ElementType::kS16,  ElementType::kU8,  ElementType::kU16, ElementType::kU32,
    ElementType::kU64, ElementType::kPred, ElementType::kPred};

// Of one integer.
inline constexpr Opcode kIntegerFunctions[] = {Opcode::kAbs,    Opcode::kNegate,
                                               Opcode::kSign,   Opcode::kNot,
                                               Opcode::kPopcnt, Opcode::kCountLeadingZeros,
                                               Opcode::kCopy};

// Of two integers of a type.
inline constexpr Opcode kIntegerOps[] = {Opcode::kAdd,
                                         Opcode::kSubtract,
                                         Opcode::kMultiply,
                                         Opcode::kMulhi,
                                         Opcode::kDivide,
                                         Opcode::kRemainder,
                                         Opcode::kPower,
                                         Opcode::kMaximum,
                                         Opcode::kMinimum,
                                         Opcode::kAnd,
                                         Opcode::kOr,
                                         Opcode::kXor,
                                         Opcode::kShiftLeft,
                                         Opcode::kShiftRightArithmetic,
                                         Opcode::kShiftRightLogical};

// Functions of a float that is clamped to `bound` on both sides of 0.
struct BoundedFunction {
  Opcode opcode;
  double bound;
};
inline constexpr BoundedFunction kBoundedFunctions[] = {
    {Opcode::kSine, 8},      {Opcode::kCosine, 8},  {Opcode::kTan, 1},
    {Opcode::kAsin, 0.875},  {Opcode::kAcos, 0.75}, {Opcode::kAtanh, 0.75},
    {Opcode::kAsinh, 100},   {Opcode::kSinh, 3},    {Opcode::kCosh, 3},
    {Opcode::kErf, 100},     {Opcode::kErfc, 8},    {Opcode::kErfInv, 0.875},
    {Opcode::kBesselI1e, 20}};

}  // namespace kiln::testing
