// Expansions: ops that compiled code makes from other ops. Each has a function here that builds its
// value before it; `expand-ops` is the pass for all of them. They precede type legalisation
// (expand-narrow, expand-complex), so they may use any types.
#pragma once

#include <span>

#include "passes/expand/builder.h"
#include "passes/pass.h"

namespace kiln::passes::expand {

// The replacement of an instruction, of its shape up to layouts.
using Expansion = Result<ir::Instruction*> (*)(Builder& b, ir::Instruction* i);

// Whether there is one.
bool IsExpanded(Opcode opcode);

// convolution.cc
Result<ir::Instruction*> Convolution(Builder& b, ir::Instruction* i);
// convolution_phases.cc
// Without holes between the operand's elements, where that is worth it; `expand` makes the
// products.
Result<ir::Instruction*> ConvolutionByPhases(Builder& b, ir::Instruction* i, Expansion expand);
// convolution_channels.cc
// With one feature in and out of each group, where windows share what they read; `expand` has the
// others.
Result<ir::Instruction*> ConvolutionByChannels(Builder& b, ir::Instruction* i, Expansion expand);
// The images that a convolution's windows move over, without holes, padded, with so many `more`
// elements behind each spatial dimension, as [batch, rows, ..., features].
ir::Instruction* PaddedImages(Builder& b, ir::Instruction* convolution,
                              std::span<const int64_t> more = {});
// Its result, given in this order of dimensions.
ir::Instruction* InOrderOfResult(Builder& b, ir::Instruction* convolution, ir::Instruction* y);
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
// clip_windows.cc
// Clips the windows of a reduce-window or select-and-scatter, in place: no window element is
// padding at every place. RESOURCE_EXHAUSTED if the rest is almost all padding or holes.
Result<bool> ClipWindows(ir::Instruction* i);
// functions.cc
Result<ir::Instruction*> NextAfter(Builder& b, ir::Instruction* i);

}  // namespace kiln::passes::expand

namespace kiln::passes {

// Ops that are made of others, by the table in expand.cc.
Result<bool> ExpandOps(ir::Module& module, const PassContext& context);

// Convolutions of 3 x 3 by fixed filters as products of transformed tiles, where that pays.
Result<bool> TransformConvolutions(ir::Module& module, const PassContext& context);

// For programs without fusion. An op that becomes several, by an expansion or by the types of its
// values, becomes a computation of its own.
Result<bool> OutlineOps(ir::Module& module, const PassContext& context);
// The outlined ops are fused, and inlined again.
Result<bool> FuseOutlined(ir::Module& module, const PassContext& context);

}  // namespace kiln::passes
