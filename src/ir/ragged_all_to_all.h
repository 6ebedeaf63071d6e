// HLO's ragged-all-to-all of a process alone, by other ops.
#pragma once

#include <span>

#include "ir/builder.h"

namespace kiln::ir {

// The second operand, with pieces of the first: piece k has send_sizes[k] rows, from row
// input_offsets[k] on, written to the rows from output_offsets[k] on, after the pieces before it.
// The operands are input, output, input_offsets, send_sizes, output_offsets and recv_sizes. Null,
// with nothing made, for others, and for more than 64 pieces.
Instruction* RaggedAllToAll(Builder& b, std::span<Instruction* const> operands);

}  // namespace kiln::ir
