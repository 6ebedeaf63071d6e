// The arrays of values that are tuples, in order: what calls, branches and loops hand on.
#pragma once

#include <span>
#include <vector>

#include "grad/derivative.h"
#include "ir/builder.h"

namespace kiln::grad {

// A value that is no tuple: an instruction's, or an element of it, of an element of it, ...
struct Leaf {
  ir::Instruction* value;  // no op that makes a tuple, where the leaf is an element
  Ints path = {};

  const Shape& shape() const {
    const Shape* shape = &value->shape();
    for (int64_t k : path) shape = &shape->elements()[static_cast<size_t>(k)];
    return *shape;
  }
  bool operator==(const Leaf&) const = default;
};
std::vector<Leaf> LeavesOf(ir::Instruction* value);
// Of several values.
std::vector<Leaf> LeavesOf(std::span<ir::Instruction* const> values);
// The leaf as an instruction.
ir::Instruction* ArrayOf(ir::Builder& b, const Leaf& leaf);

// The scalar constant of a type without derivatives that a leaf is, or null.
const ir::Instruction* ConstantOf(const Leaf& leaf);

std::vector<Shape> LeafShapes(const Shape& shape);

// A value of a shape by its leaves.
ir::Instruction* ValueOfLeaves(ir::Builder& b, const Shape& shape,
                               std::span<ir::Instruction* const> leaves);

// The derivatives of the leaves of a shape: null for zero.
std::vector<ir::Instruction*> LeavesOf(const Derivative& derivative, const Shape& shape);
Derivative DerivativeOf(const Shape& shape, std::span<ir::Instruction* const> leaves);
// Of the instruction of a leaf.
Derivative DerivativeOf(const Leaf& leaf, ir::Instruction* array);

}  // namespace kiln::grad
