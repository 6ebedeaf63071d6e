#include "passes/expand/sized.h"

#include "base/strings.h"

namespace kiln::passes::expand {

using ir::Instruction;

Shape WithBounds(Shape shape) {
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d).is_bounded()) shape.set_dimension(d, shape.dim(d));
  }
  for (Shape& element : shape.mutable_elements()) element = WithBounds(std::move(element));
  return shape;
}

Instruction* S32(Builder& b, int64_t value) {
  return b.Number(Shape::Scalar(ElementType::kS32), static_cast<double>(value));
}

Instruction* SizeOf(Builder& b, const Sized& x, int64_t d) {
  return x.size(d) ? x.size(d) : S32(b, x.shape().dim(d));
}

Instruction* Clamped(Builder& b, Instruction* x, int64_t low, Instruction* high) {
  return b.Add(Opcode::kClamp, {b.Number(x, static_cast<double>(low)), x, high});
}

Ints AllDimensions(const Sized& x) {
  Ints all(static_cast<size_t>(x.rank()));
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
  return all;
}

Instruction* IsThere(Builder& b, const Sized& x, const Ints& dimensions) {
  Instruction* there = nullptr;
  for (int64_t d : dimensions) {
    if (!x.size(d)) continue;
    // Places along a large dimension do not fit in an s32; the sizes of it do.
    const bool large = x.shape().dim(d) > INT32_MAX;
    const Shape counts(large ? ElementType::kS64 : ElementType::kS32, x.shape().dimensions());
    Instruction* place = b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, d}}, counts);
    Instruction* size = b.Spread(counts, b.Convert(x.size(d), counts.type()));
    Instruction* inside = b.Compare(Direction::kLt, place, size);
    there = there ? b.And(there, inside) : inside;
  }
  return there;
}

Instruction* Filled(Builder& b, const Sized& x, const Ints& dimensions, Literal scalar) {
  Instruction* there = IsThere(b, x, dimensions);
  if (!there) return x.array;
  return b.Select(there, x.array, b.Splat(x.shape(), std::move(scalar)));
}

Instruction* ZeroFilled(Builder& b, const Sized& x, const Ints& dimensions) {
  return Filled(b, x, dimensions, Literal(Shape::Scalar(x.shape().type())));
}

std::vector<Instruction*> SizesBy(Builder& b, const std::vector<Sized>& operands, int64_t rank,
                                  const Place& place) {
  std::vector<Instruction*> sizes(static_cast<size_t>(rank));
  for (size_t o = 0; o < operands.size(); ++o) {
    for (int64_t d = 0; d < operands[o].rank(); ++d) {
      Instruction* size = operands[o].size(d);
      const int64_t to = size ? place(o, d) : -1;
      if (to < 0) continue;
      Instruction*& known = sizes[static_cast<size_t>(to)];
      known = known && known != size ? b.Binary(Opcode::kMinimum, known, size) : size;
    }
  }
  return sizes;
}

Instruction* OnArrays(Builder& b, const Instruction* i, std::vector<Instruction*> operands) {
  ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
  spec.shape = WithBounds(i->shape());
  spec.name.clear();
  return b.computation()->Create(std::move(spec), b.before());
}

std::vector<Instruction*> ArraysOf(const std::vector<Sized>& operands) {
  std::vector<Instruction*> arrays;
  for (const Sized& operand : operands) arrays.push_back(operand.array);
  return arrays;
}

Status HasNoCode(const Instruction* i, const std::vector<Sized>& operands) {
  std::string of;
  for (const Sized& operand : operands) {
    Shape shape = operand.shape();
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (operand.size(d)) shape.set_dimension(d, Dimension::Bounded(shape.dim(d)));
    }
    of += Cat(of.empty() ? " of " : ", ", shape);
  }
  return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", i->shape(),
                       " has no compiled code: bounded dimensions", of);
}

}  // namespace kiln::passes::expand
