// What the derivatives of calls, branches and loops have in common.
#pragma once

#include <string_view>
#include <vector>

#include "grad/body.h"
#include "grad/forward.h"
#include "grad/leaves.h"
#include "grad/reverse.h"

namespace kiln::grad {

// Which leaves have derivatives.
Flags ActiveOf(const Reverse& reverse, std::span<const Leaf> leaves);

// Arguments of a body that are constants where it is called.
void BindConstants(Body& body, std::span<const Leaf> leaves);

std::vector<ir::Instruction*> ArraysOf(ir::Builder& b, std::span<const Leaf> leaves);

// An argument for the derivative of each array that has one; null for the others.
std::vector<ir::Instruction*> AddArguments(Body& body,
                                           std::span<ir::Instruction* const> derivatives);

inline void AddTo(Reverse& reverse, const Leaf& leaf, ir::Instruction* cotangent) {
  reverse.Add(leaf.value, DerivativeOf(leaf, cotangent));
}

// A copy of an op before it, which calls others with other operands, and takes its place; null,
// with the builder's failure, if it cannot be made.
ir::Instruction* PutBefore(Builder& b, ir::Instruction* op, ir::Builder& early,
                           std::vector<ir::Instruction*> operands,
                           std::vector<ir::Computation*> called);

// UNIMPLEMENTED, naming the op, where it would have to make or to store values of the shape: `can`
// says whether it may.
bool CheckShape(bool can, Builder& b, const ir::Instruction& op, const Shape& shape);

}  // namespace kiln::grad
