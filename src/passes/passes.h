// The passes that need no more than their names' worth of explanation; each is one free function.
#pragma once

#include "passes/pass.h"

namespace kiln::passes {

// Grids of processes, run by the evaluator, become calls with their programs as text.
Result<bool> OutlineGrids(ir::Module& module, const PassContext& context);
// call(x), to_apply=f => f's body in its place; also inside reducers' and loops' computations.
Result<bool> InlineCalls(ir::Module& module, const PassContext& context);
// fusion(x), calls=f => f's body in its place, where a fusion that was given is no kernel as it is.
Result<bool> InlineFusions(ir::Module& module, const PassContext& context);
// Custom calls that are markers become their operand. Operands and results of functions outside
// generated code become row-major.
Result<bool> PrepareCalls(ir::Module& module, const PassContext& context);
// map(x), to_apply=f => f's ops on all elements at once, where they are elementwise.
Result<bool> InlineMaps(ir::Module& module, const PassContext& context);
// The same for one map, whose computation is a kernel::IsScalarRegion.
void InlineMap(ir::Instruction* map);
// constant((a, b)) => tuple(constant(a), constant(b))
Result<bool> SplitConstants(ir::Module& module, const PassContext& context);
// Removes instructions that no root needs, and computations without callers.
Result<bool> EliminateDeadCode(ir::Module& module, const PassContext& context);
// Makes equal instructions one: same op, operands (of a commutative op in any order) and
// computations.
Result<bool> EliminateCommonSubexpressions(ir::Module& module, const PassContext& context);
// Evaluates what depends on constants alone.
Result<bool> FoldConstants(ir::Module& module, const PassContext& context);
// Tuples taken apart again, and tuples of all the elements of one tuple.
Result<bool> SimplifyTuples(ir::Module& module, const PassContext& context);
// Sorts of single elements, and operands of sorts that nobody needs.
Result<bool> SimplifySorts(ir::Module& module, const PassContext& context);
// Reductions of several operands: results that nobody needs.
Result<bool> SimplifyReductions(ir::Module& module, const PassContext& context);
// Reductions over few concatenated columns: ops on the columns.
Result<bool> UnrollReductions(ir::Module& module, const PassContext& context);
// Identities of the algebra of ops; see simplify/.
Result<bool> SimplifyAlgebra(ir::Module& module, const PassContext& context);
// Conditionals with a known branch, and unused results and operands; see control/.
Result<bool> SimplifyConditionals(ir::Module& module, const PassContext& context);
// Loops with a trip count of 0 or 1, invariant state, and unused state.
Result<bool> SimplifyWhiles(ir::Module& module, const PassContext& context);
// Induction variables: their final values, comparisons decided by their ranges, and dependent ones
// merged.
Result<bool> SimplifyInductionVariables(ir::Module& module, const PassContext& context);
// Values of a loop's body computed from invariant state are computed before the loop.
Result<bool> MoveInvariants(ir::Module& module, const PassContext& context);
// Moves what depends on frozen arguments and constants alone into PassContext::frozen_parts.
Result<bool> SplitFrozen(ir::Module& module, const PassContext& context);
// dot(transpose(x), y) => dot(x, y) with other dimension numbers.
Result<bool> FoldTransposes(ir::Module& module, const PassContext& context);
// x > y => max(x, y) > y, where the maximum is there and x is needed for nothing else.
Result<bool> CompareExtrema(ir::Module& module, const PassContext& context);
// Cheap ops again before uses far behind, where their operands are kept anyway; see memory/.
Result<bool> Rematerialise(ir::Module& module, const PassContext& context);
// Reductions with the users of their results on the same rows, as fusions: softmax, normalisations.
Result<bool> FuseRows(ir::Module& module, const PassContext& context);
// Producers into consumers, and siblings with each other, as fusions; see fusion/.
Result<bool> Fuse(ir::Module& module, const PassContext& context);
// Gemms with the kernels over their rows, as chains: a block of rows is used while it is in the
// cache. For a CPU.
Result<bool> FuseChains(ir::Module& module, const PassContext& context);
// Horizontal fusion: small independent kernels as bundles, one kernel each.
Result<bool> BundleKernels(ir::Module& module, const PassContext& context);
// Two iterations in one, for loops whose arrays would be copied back after each.
Result<bool> DoubleBuffers(ir::Module& module, const PassContext& context);
// One caller for each loop's and branch's computation.
Result<bool> FlattenCallGraphPass(ir::Module& module, const PassContext& context);
// The order in which instructions run.
Result<bool> SchedulePass(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes
