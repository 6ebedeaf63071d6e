// How far compiled code may be off, as code: the column of ops.def and
// complex_accuracy.def.
#pragma once

#include "ops/op.h"

namespace kiln {

// Null for an op without a bound: one that moves numbers, or whose operands are no real numbers.
const Accuracy* AccuracyOf(Opcode opcode);

// The same of complex numbers.
struct ComplexAccuracy {
  enum Counts { kOfPart, kOfTerms, kOfExponent };
  double c64, c128;
  Counts counts;

  double Of(ElementType type) const { return type == ElementType::kC64 ? c64 : c128; }
  // How much smaller than its terms a difference is that still counts as itself.
  static double TermsOf(ElementType type) { return type == ElementType::kC64 ? 0x1p34 : 0x1p50; }
};

const ComplexAccuracy* ComplexAccuracyOf(Opcode opcode);

}  // namespace kiln
