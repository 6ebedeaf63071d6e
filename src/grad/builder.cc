#include "grad/builder.h"

#include <utility>

namespace kiln::grad {

using ir::Instruction;

Result<Instruction*> Builder::Insert(ir::InstructionSpec& spec, bool is_complete) {
  if (origin_) {
    spec.op_name = origin_->op_name();
    spec.frontend_attributes = origin_->frontend_attributes();
  }
  return ir::Builder::Insert(spec, is_complete);
}

Instruction* Builder::Zeros(const Shape& shape) {
  if (shape.is_array()) return Number(shape, 0);
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Zeros(element));
  return Tuple(std::move(elements));
}

Instruction* Builder::Whole(const Derivative& derivative, const Shape& shape) {
  if (shape.is_array()) return derivative.array ? derivative.array : Zeros(shape);
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    elements.push_back(Whole(derivative.Element(k), shape.elements()[k]));
  }
  return Tuple(std::move(elements));
}

Derivative Builder::Parts(Instruction* whole) {
  const Shape& shape = whole->shape();
  if (!IsDifferentiable(shape)) return {};
  if (shape.is_array()) return {whole};
  Derivative parts;
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    const bool has = IsDifferentiable(shape.elements()[k]);
    parts.elements.push_back(has ? Parts(Element(whole, static_cast<int64_t>(k))) : Derivative());
  }
  return parts;
}

namespace {

// A zero array with a part replaced: dynamic-update-slice(0, update, starts...).
bool IsPlacedSlice(const Instruction* x) {
  return x->opcode() == Opcode::kDynamicUpdateSlice && x->operand(0)->IsConstantOf(0);
}

}  // namespace

// a + dynamic-update-slice(0, u, i) = dynamic-update-slice(a, dynamic-slice(a, i) + u, i)
// which a loop that adds up the cotangents of slices does in place.
Instruction* Builder::Accumulate(Instruction* a, Instruction* b) {
  if (IsPlacedSlice(a) && !IsPlacedSlice(b)) std::swap(a, b);
  if (!IsPlacedSlice(b)) return Plus(a, b);
  std::vector<Instruction*> operands(b->operands().begin(), b->operands().end());
  std::vector<Instruction*> starts(operands.begin() + 2, operands.end());
  std::vector<Instruction*> slice = starts;
  slice.insert(slice.begin(), a);
  Instruction* there =
      Add(Opcode::kDynamicSlice, slice, {{Attr::kDynamicSliceSizes, operands[1]->shape().dims()}});
  operands[0] = a;
  operands[1] = Plus(there, operands[1]);
  return Add(Opcode::kDynamicUpdateSlice, std::move(operands));
}

Derivative Builder::Accumulate(const Derivative& a, const Derivative& b) {
  if (!a.array && a.elements.empty()) return b;
  if (!b.array && b.elements.empty()) return a;
  if (a.array && b.array) return {Accumulate(a.array, b.array)};
  Derivative sum;
  for (size_t k = 0; k < std::max(a.elements.size(), b.elements.size()); ++k) {
    sum.elements.push_back(Accumulate(a.Element(k), b.Element(k)));
  }
  return sum;
}

}  // namespace kiln::grad
