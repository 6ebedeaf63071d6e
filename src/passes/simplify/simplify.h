// The algebraic simplifier: one function per family of ops, each a list of rewrites that are headed
// by their algebra.
//
// Order: a rewrite must strictly reduce (number of instructions that are not free to repeat, then
// bytes of all results, then instructions), so that the fixed point ends. Floats keep IEEE 754's
// results to the bit but for the payload of NaNs; a rule that cannot promise that says so and asks.
#pragma once

#include "ir/ir.h"

namespace kiln::passes::simplify {

// What replaces the instruction: an instruction of the same shape that exists or was created before
// it; null where no rule applies.
ir::Instruction* Arithmetic(ir::Instruction* i);
ir::Instruction* CompareAndSelect(ir::Instruction* i);
ir::Instruction* ReshapeAndTranspose(ir::Instruction* i);
ir::Instruction* BroadcastRules(ir::Instruction* i);
ir::Instruction* SliceConcatenatePad(ir::Instruction* i);
ir::Instruction* ConvertRules(ir::Instruction* i);
ir::Instruction* ReduceRules(ir::Instruction* i);
ir::Instruction* DotRules(ir::Instruction* i);

// Helpers of the rules: a new instruction before `at`, of `at`'s shape unless one is given.
ir::Instruction* Make(ir::Instruction* at, Opcode opcode, std::vector<ir::Instruction*> operands,
                      Attributes attributes = {});
ir::Instruction* MakeShaped(ir::Instruction* at, const Shape& shape, Opcode opcode,
                            std::vector<ir::Instruction*> operands, Attributes attributes = {});

}  // namespace kiln::passes::simplify
