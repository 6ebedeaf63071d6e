// The work of a module, by the definitions of XLA's HloCostAnalysis. It counts the ops, not a
// device's implementation of them.
#pragma once

#include <cstdint>

#include "ir/ir.h"

namespace kiln::ir {

// The work of ops:
//   elementwise         1 per element of the result, of any type: a transcendental operation if the
//                       op table says so, else a flop; a copy has none
//   dot, convolution    2 flops per product, without products of padding and holes
//   reduce, map,        the work of their computation, once per application: a reduce of n elements
//   scatter             to m applies it n - m times
//   select-and-scatter  per window of n elements: n - 1 selections, and one scatter
//   sort, topk          n log2(n) flops for n elements, the logarithm rounded up
//   fft                 5 n log2(n) flops for n complex points, half of it for real ones
//   triangular-solve    2 flops per product
//   cholesky            n^3 / 3 flops
//   while               one iteration
//   conditional         the most of any branch
// Ops that move elements have none. The work of custom calls is unknown, and not counted.
struct Operations {
  int64_t flops = 0, transcendentals = 0;
  bool operator==(const Operations&) const = default;
};
Operations OperationsOf(const Module& module);
Operations OperationsOf(const Instruction& instruction);

// The bytes of all literals. A literal shared by several constants counts once.
int64_t ConstantBytes(const Module& module);

}  // namespace kiln::ir
