#include "grad/builder.h"

#include <numeric>
#include <utility>

#include "ir/reducer.h"

namespace kiln::grad {

using ir::Instruction;

Result<Instruction*> Builder::Insert(ir::InstructionSpec& spec, bool is_complete) {
  if (origin_) {
    spec.op_name = origin_->op_name();
    spec.frontend_attributes = origin_->frontend_attributes();
  }
  return ir::Builder::Insert(spec, is_complete);
}

Instruction* Builder::IotaLike(Instruction* like, ElementType type, int64_t dimension) {
  std::vector<Dimension> sizes = like->shape().dimensions();
  for (Dimension& size : sizes) {
    if (size.is_bounded()) size = size.size();
  }
  return WithSizesOf(like, Iota(Shape(type, std::move(sizes)), dimension));
}

Instruction* Builder::SizeOf(Instruction* x, int64_t d) {
  const Dimension& size = x->shape().dimension(d);
  if (size.is_constant()) return Scalar(ElementType::kS32, static_cast<double>(size.size()));
  return Add(Opcode::kGetDimensionSize, {x}, {{Attr::kDimensions, Ints{d}}});
}

Instruction* Builder::SumOfAll(Instruction* x) {
  Ints dimensions(static_cast<size_t>(x->shape().rank()));
  std::iota(dimensions.begin(), dimensions.end(), 0);
  return dimensions.empty() ? x : Sum(x, std::move(dimensions));
}

Instruction* Builder::SliceAlong(Instruction* x, int64_t d, SliceDimension slice) {
  std::vector<SliceDimension> slices;
  for (int64_t size : x->shape().dims()) slices.push_back({0, size, 1});
  slices[static_cast<size_t>(d)] = slice;
  return Slice(x, std::move(slices));
}

bool Builder::IsIdentity(Opcode opcode, const Instruction* x) {
  const std::optional<Literal> identity = ir::IdentityOf(opcode, x->shape().type());
  if (!identity || !x->IsConstant()) return false;
  return x->literal() == *identity || (opcode == Opcode::kAdd && x->IsConstantOf(0));
}

void Builder::RequireSum(const Instruction* op) {
  if (op->called().empty() || ir::ReducerOf(*op->called(0)) == Opcode::kAdd) return;
  Fail(Unimplemented("'", op->name(), "': ", OpcodeName(op->opcode()),
                     " has no derivative by other computations than a sum"));
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

// A zero array with parts replaced or added: dynamic-update-slice(0, update, starts...), or
// scatter(0, indices, updates, +).
bool IsPlacedSlice(const Instruction* x) {
  if (x->operand_count() == 0 || !x->operand(0)->IsConstantOf(0)) return false;
  if (x->opcode() == Opcode::kDynamicUpdateSlice) return true;
  return x->opcode() == Opcode::kScatter && x->operand_count() == 3 &&
         ir::ReducerOf(*x->called(0)) == Opcode::kAdd;
}

}  // namespace

// a + dynamic-update-slice(0, u, i) = dynamic-update-slice(a, dynamic-slice(a, i) + u, i)
// a + scatter(0, i, u, +) = scatter(a, i, u, +)
// which a loop that adds up the cotangents of slices does in place.
Instruction* Builder::Accumulate(Instruction* a, Instruction* b) {
  if (IsPlacedSlice(a) && !IsPlacedSlice(b)) std::swap(a, b);
  if (!IsPlacedSlice(b)) return Plus(a, b);
  std::vector<Instruction*> operands(b->operands().begin(), b->operands().end());
  if (b->opcode() == Opcode::kScatter) {
    operands[0] = a;
    return Add(Opcode::kScatter, std::move(operands), b->attributes(), std::nullopt,
               {b->called(0)});
  }
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
