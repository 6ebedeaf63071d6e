// Computations that fold elements, as combiners.
#pragma once

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// The computation that an instruction calls takes 2n scalars and gives n. UNIMPLEMENTED where it
// holds more than elementwise ops and constants.
Result<Combiner> CombinerOf(const ir::Instruction& user);

// The type in which a reduction of elements of `type` accumulates. Sums and products of half types
// are rounded once, at last. The computation of a general reduction is taken by the letter.
ElementType AccumulatorOf(const Combiner& combiner, ElementType type);

// A combiner that is one op of two arguments of a type: the sum of a dot.
Combiner CombinerOf(Opcode opcode, ElementType type);

}  // namespace kiln::kernel
