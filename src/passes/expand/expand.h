// Ops that compiled code makes of others. Each has a function here that builds its value before it;
// `expand-ops` is the pass that applies them all. They come before type legalisation
// (expand-narrow, expand-complex), so they may use any types.
#pragma once

#include "passes/expand/builder.h"
#include "passes/pass.h"

namespace kiln::passes::expand {

// The replacement of an instruction, of its shape up to layouts.
using Expansion = Result<ir::Instruction*> (*)(Builder& b, ir::Instruction* i);

// Whether there is one.
bool IsExpanded(Opcode opcode);

// batch_norm.cc
Result<ir::Instruction*> BatchNormTraining(Builder& b, ir::Instruction* i);
Result<ir::Instruction*> BatchNormInference(Builder& b, ir::Instruction* i);
Result<ir::Instruction*> BatchNormGrad(Builder& b, ir::Instruction* i);
// convolution.cc
Result<ir::Instruction*> Convolution(Builder& b, ir::Instruction* i);
// random.cc
Result<ir::Instruction*> Rng(Builder& b, ir::Instruction* i);
Result<ir::Instruction*> RngBitGenerator(Builder& b, ir::Instruction* i);
// processes.cc
Result<ir::Instruction*> OneProcess(Builder& b, ir::Instruction* i);
// select_and_scatter.cc
Result<ir::Instruction*> SelectAndScatter(Builder& b, ir::Instruction* i);
// bitcast.cc
Result<ir::Instruction*> Bitcast(Builder& b, ir::Instruction* i);
// The same of a value: its bytes in an array of another shape, both of types wider than a byte's
// bits or pred.
ir::Instruction* BytesAs(Builder& b, ir::Instruction* x, const Shape& shape);
// windows.cc
// In its place: a reduce-window or select-and-scatter whose windows have no element that is padding
// wherever they are. RESOURCE_EXHAUSTED where what is left is almost all padding or holes.
Result<bool> ClipWindows(ir::Instruction* i);
// functions.cc
Result<ir::Instruction*> NextAfter(Builder& b, ir::Instruction* i);

}  // namespace kiln::passes::expand

namespace kiln::passes {

// Ops that are made of others, by the table in expand.cc.
Result<bool> ExpandOps(ir::Module& module, const PassContext& context);

// For programs whose ops are not fused with each other. What becomes several ops, by that table or
// by the types of its values, becomes a computation of its own.
Result<bool> OutlineOps(ir::Module& module, const PassContext& context);
// The outlined ops are fused, and inlined again.
Result<bool> FuseOutlined(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes
