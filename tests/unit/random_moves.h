// Ops that move elements and bits, and that fold what windows hold, for the generators of random
// modules.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::testing {

struct MoveSource {
  ir::Module& module;
  ir::Computation& computation;
  std::mt19937_64& random;
  std::span<ir::Instruction* const> values;  // what may be an operand
  int64_t max_elements = 0;
  int max_rank = 0;
  bool rare_types = false;  // whether there may be any of kRareTypes
};

struct MoveOp {
  std::vector<ir::Instruction*> results;     // arrays
  std::vector<const ir::Instruction*> data;  // the operands that results are made of
  bool rounds = false;                       // of floats: more than moved and compared
};

// A dynamic-slice, dynamic-update-slice, gather or scatter of `x`, an array. Indices are numbers of
// any integer type, a few of them outside of the array. No results where x has no such op.
MoveOp RandomWindowOp(const MoveSource& source, ir::Instruction* x);

// A bitcast-convert, reduce-precision, get-dimension-size or reverse of `x`, whose elements must be
// exact. What was a float is an integer or, bit by bit, the float that it was.
MoveOp RandomBitsOp(const MoveSource& source, ir::Instruction* x);

// A reduce-window of `x`: sums, extrema or bits, often cumulative, sometimes of two operands.
MoveOp RandomReduceWindow(const MoveSource& source, ir::Instruction* x);

}  // namespace kiln::testing
