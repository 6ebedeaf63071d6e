// Helpers of passes for called computations.
#pragma once

#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// Copies the computation's instructions to before `at`, with values in place of its parameters, and
// returns the copy of its root.
ir::Instruction* CopyBody(ir::Instruction* at, const ir::Computation& computation,
                          std::span<ir::Instruction* const> arguments);

// Equal but for names, instruction by instruction.
bool IsSameComputation(const ir::Computation& a, const ir::Computation& b);

// The instruction's callee number k, copied first where others call it, too: to be changed.
ir::Computation* OwnCallee(ir::Instruction* caller, int64_t k);

// Clears a computation without callers, such as a branch that was copied to the place of its call,
// and its callees without other callers. These would otherwise seem to have two callers, and be
// copied before a change. Returns whether there were no callers.
bool DropUncalled(ir::Computation* c);
// Removes an instruction, and its computations without other callers.
void RemoveWithCallees(ir::Instruction* caller);

// Before `at` (null: at the end).
ir::Instruction* MakeTuple(ir::Computation* c, std::vector<ir::Instruction*> elements,
                           ir::Instruction* at);

// Whether the value can be made anywhere: a constant, or one repeated, or a count.
bool IsMadeOfConstant(const ir::Instruction* x);
// Such a value again before `at`, in another computation.
ir::Instruction* CopyOfConstant(const ir::Instruction* value, ir::Instruction* at);

// The tuple of the kept elements, made before `at`.
ir::Instruction* KeptElements(ir::Instruction* tuple, const std::vector<bool>& keep,
                              ir::Instruction* at);
// The whole tuple of `shape` again, from a tuple of its kept elements; zeros, which nobody reads,
// in the others' places.
ir::Instruction* WholeTuple(ir::Instruction* kept, const Shape& shape,
                            const std::vector<bool>& keep, ir::Instruction* at);

// Makes the computation take and read the kept elements of its one parameter alone. Nobody may read
// the others.
void ShrinkParameter(ir::Computation* computation, const std::vector<bool>& keep);

// Which elements of a tuple are read by themselves; all where somebody needs the whole tuple.
std::vector<bool> ElementsRead(const ir::Instruction* tuple);

}  // namespace kiln::passes
