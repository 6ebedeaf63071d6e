// The error bounds of compiled code: the columns of ops.def and complex_accuracy.def.
#pragma once

#include "ops/op.h"

namespace kiln {

// Null for an op without a bound: one that moves numbers, or without real operands.
const Accuracy* AccuracyOf(Opcode opcode);

// The same for complex numbers.
struct ComplexAccuracy {
  enum Counts { kOfPart, kOfTerms, kOfExponent };
  double c64, c128;
  Counts counts;

  double Of(ElementType type) const { return type == ElementType::kC64 ? c64 : c128; }
  // The ratio of a difference to its terms down to which errors count in units of the difference.
  static double TermsOf(ElementType type) { return type == ElementType::kC64 ? 0x1p34 : 0x1p50; }
};

const ComplexAccuracy* ComplexAccuracyOf(Opcode opcode);

}  // namespace kiln
