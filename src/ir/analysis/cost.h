// The work of a module, by the definitions of XLA's HloCostAnalysis. It counts the ops, not a
// device's implementation of them.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::ir {

// Of an elementwise op one for each element of its result: a transcendental operation where the op
// table says so, else a flop, whatever the element type. A dot and a convolution do two flops for
// each product, but for those with padding and holes. A reduce, a map and a scatter do what their
// computation does as often as they apply it (a reduce of n elements to m: n - m times; a
// select-and-scatter selects in each window of n elements n - 1 times, and scatters once), and a
// sort of n elements n times the logarithm of n to base 2, rounded up. A transform of n complex
// points does 5 n times the logarithm of n to base 2, and of real ones half of that; a triangular
// solve two flops for each product, and a decomposition a third of n^3. A loop counts once; of a
// conditional the branch that does most counts. Ops that move elements count nothing, and the work
// of custom calls is unknown.
struct Operations {
  int64_t flops = 0, transcendentals = 0;
  bool operator==(const Operations&) const = default;
};
Operations OperationsOf(const Module& module);
Operations OperationsOf(const Instruction& instruction);

// The bytes of all literals, of which each counts once however many constants have it.
int64_t ConstantBytes(const Module& module);

}  // namespace kiln::ir
