// Floats of 8 bits and fewer, as bits in bytes: tensor/float_format.h in ops.
#pragma once

#include "passes/expand/builder.h"
#include "tensor/float_format.h"

namespace kiln::passes::expand {

// bits : u8[...] => f32[...]   exact; a NaN keeps its payload
ir::Instruction* DecodeFloat(Builder& b, const FloatFormat& format, ir::Instruction* bits);
// x : f32[...] or f64[...] => u8[...]   rounded once, to nearest even
ir::Instruction* EncodeFloat(Builder& b, const FloatFormat& format, ir::Instruction* x);

}  // namespace kiln::passes::expand
