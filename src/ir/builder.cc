#include "ir/builder.h"

#include <algorithm>
#include <numeric>

#include "ir/reducer.h"

namespace kiln::ir {
namespace {

// 0, 1, 2, ...
bool IsInOrder(const Ints& dimensions) {
  for (size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

}  // namespace

Result<Shape> InferShape(const InstructionSpec& spec) {
  std::vector<const Shape*> operands;
  for (const Instruction* operand : spec.operands) operands.push_back(&operand->shape());
  std::vector<ProgramShape> called;
  for (const Computation* c : spec.called) called.push_back(c->program_shape());
  return kiln::InferShape(
      {spec.opcode, operands, spec.attributes, spec.shape ? &*spec.shape : nullptr, called});
}

Instruction* Builder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return nullptr;
}

Result<Instruction*> Builder::Insert(InstructionSpec& spec, bool is_complete) {
  if (!is_complete) {
    KILN_ASSIGN_OR_RETURN(spec.shape, InferShape(spec));
  }
  return computation_->Create(std::move(spec), before_);
}

Instruction* Builder::Make(InstructionSpec spec, bool is_complete) {
  if (operands_ == Operands::kChecked) {
    if (!ok()) return nullptr;
    if (std::ranges::find(spec.operands, nullptr) != spec.operands.end()) {
      return Fail(Internal(OpcodeName(spec.opcode), ": an operand is missing"));
    }
  }
  spec.op_name = op_name_;
  Result<Instruction*> made = Insert(spec, is_complete);
  if (made.ok()) return *made;
  if (operands_ == Operands::kChecked) return Fail(made.status());
  Fail(Internal(made.status().message()));
  if (!spec.shape) spec.shape = Shape::Scalar(ElementType::kF32);
  return computation_->Create(std::move(spec), before_);
}

Instruction* Builder::Add(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes,
                          std::optional<Shape> declared, std::vector<Computation*> called) {
  return Make({.opcode = opcode,
               .operands = std::move(operands),
               .attributes = std::move(attributes),
               .called = std::move(called),
               .shape = std::move(declared)},
              false);
}

Instruction* Builder::AddShaped(const Shape& shape, Opcode opcode,
                                std::vector<Instruction*> operands, Attributes attributes,
                                std::vector<Computation*> called) {
  return Make({.opcode = opcode,
               .operands = std::move(operands),
               .attributes = std::move(attributes),
               .called = std::move(called),
               .shape = shape},
              true);
}

Instruction* Builder::Compare(Direction direction, Instruction* x, Instruction* y) {
  return Add(Opcode::kCompare, {x, y}, {{Attr::kDirection, direction}});
}

Instruction* Builder::Convert(Instruction* x, ElementType type) {
  if (!x || x->shape().type() == type) return x;
  return Add(Opcode::kConvert, {x}, {}, Shape::Scalar(type));
}

Instruction* Builder::Bits(Instruction* x, ElementType type) {
  if (!x || x->shape().type() == type) return x;
  return Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(type));
}

Instruction* Builder::Constant(Literal literal) {
  return Constant(std::make_shared<const Literal>(std::move(literal)));
}

Instruction* Builder::Constant(std::shared_ptr<const Literal> literal) {
  const Shape& shape = literal->shape();
  return Constant(shape, std::move(literal));
}

Instruction* Builder::Constant(const Shape& shape, std::shared_ptr<const Literal> literal) {
  return Make({.opcode = Opcode::kConstant, .shape = shape, .literal = std::move(literal)}, true);
}

Instruction* Builder::Zeros(const Shape& shape) {
  if (shape.is_token()) return Add(Opcode::kAfterAll, {});
  if (shape.is_array()) return Splat(shape, Literal(Shape::Scalar(shape.type())));
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Zeros(element));
  return Tuple(std::move(elements));
}

Instruction* Builder::Iota(const Shape& shape, int64_t dimension) {
  return Add(Opcode::kIota, {}, {{Attr::kIotaDimension, dimension}}, shape);
}

Instruction* Builder::Broadcast(Instruction* x, std::vector<Dimension> sizes, Ints dimensions) {
  if (!x) return nullptr;
  if (IsInOrder(dimensions) && x->shape().dimensions() == sizes) return x;
  return Add(Opcode::kBroadcast, {x}, {{Attr::kDimensions, std::move(dimensions)}},
             Shape(x->shape().type(), std::move(sizes)));
}

Instruction* Builder::Spread(const Shape& shape, Instruction* scalar) {
  if (shape.rank() == 0) return scalar;
  return Broadcast(scalar, shape.dimensions(), {});
}

Instruction* Builder::WithSize(Instruction* x, int64_t d, Instruction* size,
                               const Dimension& declared) {
  if (!x) return nullptr;
  Shape shape = x->shape();
  shape.set_dimension(d, declared);
  return Add(Opcode::kSetDimensionSize, {x, size}, {{Attr::kDimensions, Ints{d}}}, shape);
}

Instruction* Builder::WithSizesOf(Instruction* like, Instruction* x) {
  if (!like || !x) return nullptr;
  for (int64_t d = 0; x && d < like->shape().rank(); ++d) {
    if (like->shape().dimension(d) == x->shape().dimension(d)) continue;
    const Attributes dimension = {{Attr::kDimensions, Ints{d}}};
    x = Add(Opcode::kSetDimensionSize, {x, Add(Opcode::kGetDimensionSize, {like}, dimension)},
            dimension);
  }
  return x;
}

Instruction* Builder::BroadcastLike(Instruction* like, Instruction* x, Ints dimensions) {
  if (!like) return nullptr;
  std::vector<Dimension> sizes = like->shape().dimensions();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool is_new = std::ranges::count(dimensions, static_cast<int64_t>(d)) == 0;
    if (is_new && sizes[d].is_bounded()) sizes[d] = sizes[d].size();
  }
  return WithSizesOf(like, Broadcast(x, std::move(sizes), std::move(dimensions)));
}

Instruction* Builder::Reshape(Instruction* x, std::vector<Dimension> sizes) {
  if (!x || x->shape().dimensions() == sizes) return x;
  return Add(Opcode::kReshape, {x}, {}, Shape(x->shape().type(), std::move(sizes)));
}

Instruction* Builder::Transpose(Instruction* x, Ints permutation) {
  if (!x || (IsInOrder(permutation) && std::ssize(permutation) == x->shape().rank())) return x;
  return Add(Opcode::kTranspose, {x}, {{Attr::kDimensions, std::move(permutation)}});
}

Instruction* Builder::Concatenate(std::vector<Instruction*> parts, int64_t dimension) {
  if (parts.size() == 1) return parts[0];
  return Add(Opcode::kConcatenate, std::move(parts), {{Attr::kDimensions, Ints{dimension}}});
}

Instruction* Builder::Slice(Instruction* x, std::vector<SliceDimension> slices) {
  return Add(Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

Instruction* Builder::Reduce(Opcode opcode, Instruction* x, double init, Ints dimensions,
                             std::string_view reducer_name) {
  if (!x) return nullptr;
  return ReduceFrom(Scalar(x->shape().type(), init), opcode, x, std::move(dimensions),
                    reducer_name);
}

Instruction* Builder::ReduceFrom(Instruction* init, Opcode opcode, Instruction* x, Ints dimensions,
                                 std::string_view reducer_name) {
  if (!x) return nullptr;
  return Add(Opcode::kReduce, {x, init}, {{Attr::kDimensions, std::move(dimensions)}}, std::nullopt,
             {Reducer(opcode, x->shape().type(), reducer_name)});
}

Computation* Builder::Reducer(Opcode opcode, ElementType type, std::string_view name) {
  Result<Computation*> reducer = AddReducer(*computation_->parent(), opcode, type, name);
  if (reducer.ok()) return *reducer;
  Fail(reducer.status());
  return nullptr;
}

Instruction* Builder::Element(Instruction* tuple, int64_t k) {
  if (!tuple) return nullptr;
  if (tuple->opcode() == Opcode::kTuple && k >= 0 && k < tuple->operand_count()) {
    return tuple->operand(k);
  }
  return Add(Opcode::kGetTupleElement, {tuple}, {{Attr::kIndex, k}});
}

Instruction* Builder::OneOrTuple(std::vector<Instruction*> values) {
  return values.size() == 1 ? values[0] : Tuple(std::move(values));
}

Instruction* Builder::Parameter(const Shape& shape) {
  const int64_t number = std::ssize(computation_->parameters());
  return Make({.opcode = Opcode::kParameter,
               .attributes = {{Attr::kParameterNumber, number}},
               .shape = shape},
              true);
}

}  // namespace kiln::ir
