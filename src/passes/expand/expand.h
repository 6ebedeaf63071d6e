// Ops that compiled code makes of others. Each has a function here that builds its value before it;
// `expand-ops` is the pass that applies them all.
#pragma once

#include "passes/expand/builder.h"
#include "passes/pass.h"

namespace kiln::passes::expand {

// What stands for an instruction, of its shape but for layouts.
using Expansion = Result<ir::Instruction*> (*)(Builder& b, ir::Instruction* i);

// batch_norm.cc
Result<ir::Instruction*> BatchNormTraining(Builder& b, ir::Instruction* i);
Result<ir::Instruction*> BatchNormInference(Builder& b, ir::Instruction* i);
Result<ir::Instruction*> BatchNormGrad(Builder& b, ir::Instruction* i);
// random.cc
Result<ir::Instruction*> RngBitGenerator(Builder& b, ir::Instruction* i);
// processes.cc
Result<ir::Instruction*> OneProcess(Builder& b, ir::Instruction* i);
// functions.cc
Result<ir::Instruction*> NextAfter(Builder& b, ir::Instruction* i);

}  // namespace kiln::passes::expand

namespace kiln::passes {

// Ops that are made of others, by the table in expand.cc.
Result<bool> ExpandOps(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes
