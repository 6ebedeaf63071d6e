// How far compiled code may be off, as code: accuracy.def.
#pragma once

#include "ops/op.h"

namespace kiln {

// The error that a function's results have at most, in units of the last place.
struct Accuracy {
  enum Counts { kOfResult, kOfOne };
  double f16, bf16, f32, f64;
  Counts counts;

  // `type` is one of these.
  double Of(ElementType type) const;
};

// Null for an op without a row: one that moves numbers, or whose operands are no real numbers.
const Accuracy* AccuracyOf(Opcode opcode);

}  // namespace kiln
