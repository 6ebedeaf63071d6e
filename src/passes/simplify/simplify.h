// The algebraic simplifier: one function per family of ops, each a list of rewrites that are headed
// by their algebra.
//
// Order: a rewrite strictly reduces the computation in the first of these where it changes it, so
// that the fixed point ends:
//   work   what the instructions that the root needs do: their elements (of reductions and products
//          the elements that are folded), each at the weight of its op;
//   count  how many instructions the root needs, but for repeated scalars;
//   terms  the same, each counted as often as it is used: a rewrite that passes by an instruction
//          counts, whoever else keeps that instruction;
//   form   operands and ops that have a simpler form: a constant on the left of an op whose two
//          operands may change places, a constant subtracted, an array of one repeated constant, a
//          broadcast that repeats nothing, dimensions reversed in vain, arithmetic on preds and
//          selects among them;
//   moved  how many ops come after a reshape or a transpose, for each of those.
// What depends on constants alone is folded anyway: it is counted after all the rest.
// tests/unit/passes/simplify_test.cc measures it, for every rewrite of random computations.
//
// Numbers: results keep their bits, but for the sign and payload of NaNs. What an op's own bound
// allows beside (another order of a sum, x * x for power(x, 2)) says so where it stands.
#pragma once

#include <span>
#include <string_view>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// What replaces the instruction: an instruction of the same shape that exists or was created before
// it; null where no rule applies.
using Rewrite = ir::Instruction* (*)(ir::Instruction* i);

struct Family {
  std::string_view name;
  Rewrite rewrite;
  // Whether the rules are about where elements are, and hold for elements of any type. The others
  // see the types alone that kernels have: complex numbers are not ordered, small floats saturate.
  bool of_any_type = false;
};

// In the order in which they are asked.
std::span<const Family> Families();

// Rules see arrays of known sizes, and nothing that is dead: replacing that would never end.
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
ir::Instruction* WindowRules(ir::Instruction* i);
ir::Instruction* ConcatenateRules(ir::Instruction* i);
ir::Instruction* PadRules(ir::Instruction* i);
ir::Instruction* ReduceRules(ir::Instruction* i);
ir::Instruction* ReduceWindowRules(ir::Instruction* i);
ir::Instruction* DotRules(ir::Instruction* i);
ir::Instruction* SortRules(ir::Instruction* i);
ir::Instruction* RearrangementRules(ir::Instruction* i);

}  // namespace kiln::passes::simplify
