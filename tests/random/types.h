// What random modules do with complex numbers and with floats of 8 bits and fewer.
#pragma once

#include "random/maker.h"

namespace kiln::testing {

// A complex array whose parts are kept between -bound and bound.
ir::Instruction* BoundedParts(const RandomSource& source, ir::Instruction* x, double bound);

// An op of one or two complex arrays that keeps their type, away from cuts and poles. The larger
// ones and the smaller ones of two, which jump, are made of what is exact only.
RandomOp RandomComplexFunction(const RandomSource& source, ir::Instruction* x);
RandomOp RandomComplexOp(const RandomSource& source, ir::Instruction* x, ir::Instruction* y,
                         bool exact);
// A complex array's parts or absolute value, and what is complex of them again.
RandomOp RandomParts(const RandomSource& source, ir::Instruction* x);

// Ops of narrow floats, or of one of them and itself, whose results are the nearest numbers: the
// same ones wherever they are computed.
ir::Instruction* RandomNarrowFunction(const RandomSource& source, ir::Instruction* x);
ir::Instruction* RandomNarrowOp(const RandomSource& source, ir::Instruction* x, ir::Instruction* y);

// The array without NaNs, where its type has several: their signs and payloads are nobody's, but
// are in the total order.
ir::Instruction* WithoutNans(const RandomSource& source, ir::Instruction* x);

// Bits of all kinds, as an array of a narrow float type.
ir::Instruction* RandomNarrowBits(const RandomSource& source, ElementType type);

}  // namespace kiln::testing
