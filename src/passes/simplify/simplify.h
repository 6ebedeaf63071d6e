// The algebraic simplifier: one function per family of ops, a list of rewrites headed by their
// algebra.
//
// Order: a rewrite strictly reduces the first of these measures that it changes, so rewriting
// terminates. Live instructions are those the root needs.
//   work   the elements of live instructions (the folded elements of reductions and products), each
//          at the weight of its op;
//   count  the number of live instructions, without repeated scalars;
//   terms  the same, each instruction once per use: it falls where a rewrite skips an instruction
//          with other users;
//   form   operands and ops with a simpler form: a constant on the left of a commutative op, a
//          subtracted constant, an array of one repeated constant, a broadcast without repetition,
//          useless reversed dimensions, arithmetic on preds, selects among preds;
//   moved  the ops behind each reshape and transpose.
// Instructions of constants alone are folded anyway, and count after all the rest.
// tests/unit/passes/simplify_test.cc measures every rewrite of random computations.
//
// Numbers: results keep their bits, except the sign and payload of NaNs. A rule states any
// deviation within its op's error bound, such as another order of a sum, or x * x for power(x, 2).
#pragma once

#include <span>
#include <string_view>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// Returns the replacement of the instruction, of the same shape: an existing instruction, or a new
// one before it. Null if no rule applies.
using Rewrite = ir::Instruction* (*)(ir::Instruction* i);

struct Family {
  std::string_view name;
  Rewrite rewrite;
  // Whether the rules only move elements, and hold for any type. Other rules are used for the types
  // of kernels only: complex numbers are not ordered, small floats saturate.
  bool of_any_type = false;
};

// In the order of application.
std::span<const Family> Families();

// Whether rules apply: to arrays of static sizes, and to live instructions, since replacing dead
// ones would never end.
bool MayReplace(const ir::Instruction& i);

ir::Instruction* EmptyArrays(ir::Instruction* i);
ir::Instruction* Association(ir::Instruction* i);
ir::Instruction* AddAndSubtract(ir::Instruction* i);
ir::Instruction* MultiplyAndDivide(ir::Instruction* i);
ir::Instruction* PowersAndRemainders(ir::Instruction* i);
ir::Instruction* SignsAndRounding(ir::Instruction* i);
ir::Instruction* LogicRules(ir::Instruction* i);
ir::Instruction* ExtremaAndClamp(ir::Instruction* i);
ir::Instruction* CompareRules(ir::Instruction* i);
ir::Instruction* SelectRules(ir::Instruction* i);
ir::Instruction* ConvertRules(ir::Instruction* i);
ir::Instruction* BitRules(ir::Instruction* i);
ir::Instruction* BroadcastRules(ir::Instruction* i);
ir::Instruction* ReshapeRules(ir::Instruction* i);
ir::Instruction* TransposeRules(ir::Instruction* i);
ir::Instruction* ReverseRules(ir::Instruction* i);
ir::Instruction* SliceRules(ir::Instruction* i);
ir::Instruction* DynamicSliceRules(ir::Instruction* i);
ir::Instruction* GatherScatterRules(ir::Instruction* i);
ir::Instruction* ConcatenateRules(ir::Instruction* i);
ir::Instruction* PadRules(ir::Instruction* i);
ir::Instruction* ReduceRules(ir::Instruction* i);
ir::Instruction* ReduceWindowRules(ir::Instruction* i);
ir::Instruction* DotRules(ir::Instruction* i);
ir::Instruction* SortRules(ir::Instruction* i);
ir::Instruction* RearrangementRules(ir::Instruction* i);

}  // namespace kiln::passes::simplify
