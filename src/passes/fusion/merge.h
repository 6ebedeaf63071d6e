// Makes fusions: the mechanics without the decisions. Merged instructions are moved if possible: no
// two fusions may call one computation.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// Computations that run as programs, not inside kernels: the entry, loops and branches.
std::vector<ir::Computation*> ProgramComputations(ir::Module& module);

// Puts `producer` (an instruction or a fusion of one output) into `consumer` (either). The fusion
// takes the consumer's place; the producer stays where it has other users, and is removed
// otherwise. The order of instructions may need PostOrder afterwards.
ir::Instruction* MergeProducer(ir::Instruction* producer, ir::Instruction* consumer);

// Makes one fusion of a producer and its consumer: with the consumer's outputs, and those of the
// producer's outputs with other users. It takes the consumer's place. The order of instructions may
// need PostOrder afterwards.
ir::Instruction* MergeKeeping(ir::Instruction* producer, ir::Instruction* consumer);

// Makes one fusion with the outputs of all, which do not depend on each other.
ir::Instruction* MergeSiblings(const std::vector<ir::Instruction*>& siblings);

// Makes one chain (kernel/chain.h) of a gemm and a kernel that reads its results, with the second's
// outputs, and the gemm's outputs with other users. It takes the second's place. The order of
// instructions may need PostOrder afterwards.
ir::Instruction* MergeChain(ir::Instruction* gemm, ir::Instruction* rows);

// Makes one fusion of instructions, given with operands before users, none of them a fusion or of
// several outputs. `outputs` are members with other users. Further members with other users stay in
// place, and are repeated inside. The order of instructions may need PostOrder afterwards.
ir::Instruction* MergeGroup(const std::vector<ir::Instruction*>& members,
                            const std::vector<ir::Instruction*>& outputs);

// Makes one bundle (kernel/bundle.h) of kernels that do not depend on each other. It takes the
// place of the last. The order of instructions may need PostOrder afterwards.
ir::Instruction* MergeBundle(const std::vector<ir::Instruction*>& kernels);

// Inlines a fusion's instructions into its computation. Returns them.
std::vector<ir::Instruction*> Unfuse(ir::Instruction* fusion);

}  // namespace kiln::passes
