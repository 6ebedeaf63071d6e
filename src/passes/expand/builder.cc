#include "passes/expand/builder.h"

#include "ops/inference.h"

namespace kiln::passes::expand {

using ir::Instruction;

Instruction* Builder::Add(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes,
                          std::optional<Shape> declared, std::vector<ir::Computation*> called) {
  std::vector<const Shape*> shapes;
  for (const Instruction* operand : operands) shapes.push_back(&operand->shape());
  std::vector<ProgramShape> programs;
  for (const ir::Computation* c : called) programs.push_back(c->program_shape());
  Result<Shape> shape =
      InferShape({opcode, shapes, attributes, declared ? &*declared : nullptr, programs});
  if (!shape.ok()) {
    if (status_.ok()) status_ = Internal("expanding: ", shape.status().message());
    // Something to go on with, until the status is asked for.
    shape = declared ? *declared : Shape::Scalar(ElementType::kF32);
  }
  return computation_->Create({.opcode = opcode,
                               .operands = std::move(operands),
                               .attributes = std::move(attributes),
                               .called = std::move(called),
                               .shape = *std::move(shape),
                               .op_name = from_ ? from_->op_name() : std::string()},
                              at_);
}

Instruction* Builder::Compare(Direction direction, Instruction* x, Instruction* y) {
  return Add(Opcode::kCompare, {x, y}, {{Attr::kDirection, direction}});
}

Instruction* Builder::Convert(Instruction* x, ElementType type) {
  if (x->shape().type() == type) return x;
  return Add(Opcode::kConvert, {x}, {}, Shape::Scalar(type));
}

Instruction* Builder::Bits(Instruction* x, ElementType type) {
  if (x->shape().type() == type) return x;
  return Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(type));
}

Instruction* Builder::Constant(Literal literal) {
  Shape shape = literal.shape();
  return computation_->Create({.opcode = Opcode::kConstant,
                               .shape = std::move(shape),
                               .literal = std::make_shared<const Literal>(std::move(literal)),
                               .op_name = from_ ? from_->op_name() : std::string()},
                              at_);
}

Instruction* Builder::Splat(const Shape& shape, Literal scalar) {
  return Spread(shape, Constant(std::move(scalar)));
}

Instruction* Builder::Spread(const Shape& shape, Instruction* scalar) {
  if (shape.rank() == 0) return scalar;
  return Add(Opcode::kBroadcast, {scalar}, {{Attr::kDimensions, Ints()}},
             Shape(scalar->shape().type(), shape.dimensions()));
}

Instruction* Builder::Number(const Shape& shape, double value) {
  return Splat(shape, Literal::ScalarOf(shape.type(), value));
}

Instruction* Builder::Number(const Instruction* like, double value) {
  return Number(like->shape(), value);
}

Instruction* Builder::Reshape(Instruction* x, std::vector<Dimension> dimensions) {
  if (x->shape().dimensions() == dimensions) return x;
  return Add(Opcode::kReshape, {x}, {}, Shape(x->shape().type(), std::move(dimensions)));
}

Instruction* Builder::Concatenate(std::vector<Instruction*> parts, int64_t dimension) {
  return Add(Opcode::kConcatenate, std::move(parts), {{Attr::kDimensions, Ints{dimension}}});
}

Instruction* Builder::Sum(Instruction* x, Ints dimensions) {
  const Shape scalar = Shape::Scalar(x->shape().type());
  ir::Computation* sum = computation_->parent()->AddComputation("sum");
  Builder inside(sum, nullptr, from_);
  std::vector<Instruction*> terms;
  for (int64_t n : {0, 1}) {
    terms.push_back(inside.Add(Opcode::kParameter, {}, {{Attr::kParameterNumber, n}}, scalar));
  }
  sum->set_root(inside.Add(Opcode::kAdd, std::move(terms)));
  return Add(Opcode::kReduce, {x, Number(scalar, 0)}, {{Attr::kDimensions, std::move(dimensions)}},
             std::nullopt, {sum});
}

Instruction* Builder::InLayout(Instruction* value, const Shape& shape) {
  if (value->shape() == shape) return value;
  if (shape.is_tuple()) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < shape.elements().size(); ++k) {
      elements.push_back(InLayout(Element(value, static_cast<int64_t>(k)), shape.elements()[k]));
    }
    return Tuple(std::move(elements));
  }
  Instruction* copy = Unary(Opcode::kCopy, value);
  copy->set_shape(shape);
  return copy;
}

}  // namespace kiln::passes::expand
