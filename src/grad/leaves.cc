#include "grad/leaves.h"

#include <utility>

namespace kiln::grad {

using ir::Instruction;

namespace {

void Append(Instruction* value, const Shape& shape, Ints& path, std::vector<Leaf>& leaves) {
  if (!shape.is_tuple()) {
    leaves.push_back({value, path});
    return;
  }
  const bool is_made = path.empty() && value->opcode() == Opcode::kTuple;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    if (is_made) {
      Instruction* element = value->operand(static_cast<int64_t>(k));
      Append(element, element->shape(), path, leaves);
      continue;
    }
    path.push_back(static_cast<int64_t>(k));
    Append(value, shape.elements()[k], path, leaves);
    path.pop_back();
  }
}

// Takes leaves from the front.
Instruction* Assemble(ir::Builder& b, const Shape& shape, std::span<Instruction* const>& leaves) {
  if (!shape.is_tuple()) {
    Instruction* leaf = leaves.front();
    leaves = leaves.subspan(1);
    return leaf;
  }
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Assemble(b, element, leaves));
  return b.Tuple(std::move(elements));
}

void Append(const Derivative& derivative, const Shape& shape, std::vector<Instruction*>& leaves) {
  if (!shape.is_tuple()) {
    leaves.push_back(derivative.array);
    return;
  }
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    Append(derivative.Element(k), shape.elements()[k], leaves);
  }
}

Derivative Assemble(const Shape& shape, std::span<Instruction* const>& leaves) {
  if (!shape.is_tuple()) {
    Derivative array{leaves.front()};
    leaves = leaves.subspan(1);
    return array;
  }
  Derivative tuple;
  for (const Shape& element : shape.elements()) tuple.elements.push_back(Assemble(element, leaves));
  return tuple;
}

}  // namespace

std::vector<Leaf> LeavesOf(Instruction* value) {
  std::vector<Leaf> leaves;
  Ints path;
  Append(value, value->shape(), path, leaves);
  return leaves;
}

std::vector<Leaf> LeavesOf(std::span<Instruction* const> values) {
  std::vector<Leaf> leaves;
  Ints path;
  for (Instruction* value : values) Append(value, value->shape(), path, leaves);
  return leaves;
}

Instruction* ArrayOf(ir::Builder& b, const Leaf& leaf) {
  Instruction* x = leaf.value;
  for (int64_t k : leaf.path) x = b.Element(x, k);
  return x;
}

const Instruction* ConstantOf(const Leaf& leaf) {
  const Instruction* x = leaf.value;
  while (x->opcode() == Opcode::kCopy || x->opcode() == Opcode::kReshape) x = x->operand(0);
  const bool is_number = x->IsConstant() && x->shape().is_scalar();
  return leaf.path.empty() && is_number && !IsDifferentiable(x->shape()) ? x : nullptr;
}

std::vector<Shape> LeafShapes(const Shape& shape) {
  std::vector<Shape> shapes;
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) { shapes.push_back(leaf); });
  return shapes;
}

Instruction* ValueOfLeaves(ir::Builder& b, const Shape& shape,
                           std::span<Instruction* const> leaves) {
  return Assemble(b, shape, leaves);
}

std::vector<Instruction*> LeavesOf(const Derivative& derivative, const Shape& shape) {
  std::vector<Instruction*> leaves;
  Append(derivative, shape, leaves);
  return leaves;
}

Derivative DerivativeOf(const Shape& shape, std::span<Instruction* const> leaves) {
  return Assemble(shape, leaves);
}

Derivative DerivativeOf(const Leaf& leaf, Instruction* array) {
  Derivative derivative{array};
  for (auto k = leaf.path.rbegin(); k != leaf.path.rend(); ++k) {
    Derivative tuple;
    tuple.elements.resize(static_cast<size_t>(*k) + 1);
    tuple.elements.back() = std::move(derivative);
    derivative = std::move(tuple);
  }
  return derivative;
}

}  // namespace kiln::grad
