// Computations of scalars as nodes.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

// The description of an elementwise instruction for EmitOp, without its operands.
Node ElementwiseNode(const ir::Instruction& instruction);

// Whether an instruction moves the elements of a scalar, which has one: it is its operand.
bool IsSameScalar(const ir::Instruction& instruction);

// Whether a computation is made of elementwise ops on scalars, constants and at most one tuple, its
// root: what can be part of a kernel.
bool IsScalarRegion(const ir::Computation& computation);

// Makes the nodes of such a computation: `argument` gives the node of a parameter by its number,
// `add` appends a node and gives its number. The results' nodes, of a tuple's elements one by one.
// UNIMPLEMENTED where the computation is anything else.
Result<std::vector<NodeId>> AddRegion(const ir::Computation& computation,
                                      const std::function<NodeId(int64_t)>& argument,
                                      const std::function<NodeId(Node)>& add);

}  // namespace kiln::kernel
