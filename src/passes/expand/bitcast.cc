#include "passes/expand/expand.h"

namespace kiln::passes::expand {

using ir::Instruction;

namespace {

Instruction* Reinterpreted(Builder& b, Instruction* x, ElementType type) {
  return b.Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(type));
}

}  // namespace

// bitcast(x) => reshape(x)   where the type stays
// bitcast(x) => reshape(bitcast-convert(reshape(x)))   where it does not: a bitcast-convert has
// the parts of an element in the last dimension, in the order of memory. A pred is a byte:
//   bitcast(x : pred) => bitcast(convert(x) : u8)
//   bitcast(x) : pred => bitcast(x) : u8 != 0
Instruction* BytesAs(Builder& b, Instruction* x, const Shape& shape) {
  const ElementType to = shape.type();
  if (x->shape().type() == to) return b.Reshape(x, shape.dimensions());
  if (IsPred(to)) {
    Instruction* bytes = BytesAs(b, x, Shape(ElementType::kU8, shape.dimensions()));
    return b.Compare(Direction::kNe, bytes, b.Number(bytes, 0));
  }
  if (IsPred(x->shape().type())) x = b.Convert(x, ElementType::kU8);
  const int64_t from_width = ByteWidth(x->shape().type()), to_width = ByteWidth(to);
  if (from_width == to_width) return b.Bits(b.Reshape(x, shape.dimensions()), to);
  if (from_width > to_width) return b.Reshape(Reinterpreted(b, x, to), shape.dimensions());
  std::vector<Dimension> dimensions = shape.dimensions();
  dimensions.push_back(to_width / from_width);
  return Reinterpreted(b, b.Reshape(x, std::move(dimensions)), to);
}

Result<Instruction*> Bitcast(Builder& b, Instruction* i) {
  return BytesAs(b, i->operand(0), i->shape());
}

}  // namespace kiln::passes::expand
