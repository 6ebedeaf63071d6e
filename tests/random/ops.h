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

// What has derivatives in double precision, and what has none.
inline constexpr ElementType kSmoothTypes[] = {
    ElementType::kF64, ElementType::kF64,  ElementType::kF64, ElementType::kF64, ElementType::kF64,
    ElementType::kF64, ElementType::kC128, ElementType::kS32, ElementType::kPred};

// Complex numbers, and what is less than a byte wide, or a float of no more.
inline constexpr ElementType kRareTypes[] = {
    ElementType::kC64,        ElementType::kC64,        ElementType::kC128,
    ElementType::kS4,         ElementType::kU4,         ElementType::kS2,
    ElementType::kU2,         ElementType::kF8E5M2,     ElementType::kF8E4M3FN,
    ElementType::kF8E4M3,     ElementType::kF8E3M4,     ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ, ElementType::kF8E8M0FNU,
    ElementType::kF6E2M3FN,   ElementType::kF6E3M2FN,   ElementType::kF4E2M1FN};

// A float of 8 bits or fewer. It is computed with as f32 and rounded op by op, so that ops whose
// results are the nearest f32 are exact.
inline bool IsNarrowFloat(ElementType t) { return IsFloat(t) && WideOf(t) != t; }
// Whether bits tell one NaN of a narrow float type from another.
inline bool HasSeveralNans(ElementType t) {
  if (!IsNarrowFloat(t)) return false;
  const FloatFormat format = *FormatOf(t);
  return format.has_sign &&
         (format.specials == Specials::kIeee || format.specials == Specials::kNan);
}
// Integers and preds, which no evaluator rounds.
inline bool IsCounted(ElementType t) { return IsInteger(t) || IsPred(t); }
// The lower end of a range around 0 with the upper end `bound`: of a type without a sign its values
// are above 0.
inline double LowerBound(ElementType t, double bound) {
  const auto format = FormatOf(t);
  return format && !format->has_sign ? bound / 64 : -bound;
}

// A type that sums of products of a type may be taken in.
inline ElementType WiderSum(ElementType t) {
  if (IsHalf(t) || IsNarrowFloat(t)) return ElementType::kF32;
  if (t == ElementType::kC64) return ElementType::kC128;
  if (t == ElementType::kS8 || t == ElementType::kS4 || t == ElementType::kS2) {
    return ElementType::kS32;
  }
  if (t == ElementType::kU4 || t == ElementType::kU2) return ElementType::kU8;
  return t;
}

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
