#include "stablehlo/import/builder.h"

#include <algorithm>

namespace kiln::stablehlo {

using ir::Instruction;

Instruction* Builder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return nullptr;
}

Instruction* Builder::Add(Opcode opcode, Values operands, Attributes attributes,
                          const Shape* declared, std::vector<ir::Computation*> called) {
  if (!status_.ok()) return nullptr;
  if (std::ranges::find(operands, nullptr) != operands.end()) {
    return Fail(Internal(OpcodeName(opcode), ": an operand is missing"));
  }
  ir::InstructionSpec spec{.opcode = opcode,
                           .operands = std::move(operands),
                           .attributes = std::move(attributes),
                           .called = std::move(called),
                           .op_name = op_name_};
  if (declared) spec.shape = *declared;
  Result<Instruction*> added = computation_->Add(std::move(spec));
  return added.ok() ? *added : Fail(added.status());
}

Instruction* Builder::Compare(Direction direction, Instruction* x, Instruction* y) {
  return Add(Opcode::kCompare, {x, y}, {{Attr::kDirection, direction}});
}

Instruction* Builder::Convert(Instruction* x, ElementType type) {
  if (!x || x->shape().type() == type) return x;
  const Shape declared = Shape::Scalar(type);
  return Add(Opcode::kConvert, {x}, {}, &declared);
}

Instruction* Builder::Constant(Literal literal) {
  return Constant(std::make_shared<const Literal>(std::move(literal)));
}

Instruction* Builder::Constant(std::shared_ptr<const Literal> literal) {
  if (!status_.ok()) return nullptr;
  return computation_->Create({.opcode = Opcode::kConstant,
                               .shape = literal->shape(),
                               .literal = literal,
                               .op_name = op_name_});
}

Instruction* Builder::Number(const Shape& shape, double value) {
  return Spread(shape, Scalar(shape.type(), value));
}

Instruction* Builder::Spread(const Shape& shape, Instruction* scalar) {
  if (shape.rank() == 0) return scalar;
  return Add(Opcode::kBroadcast, {scalar}, {{Attr::kDimensions, Ints()}}, &shape);
}

Instruction* Builder::SpreadAlong(const Shape& shape, int64_t dimension, Instruction* vector) {
  return Add(Opcode::kBroadcast, {vector}, {{Attr::kDimensions, Ints{dimension}}}, &shape);
}

Instruction* Builder::BroadcastInDim(Instruction* x, const std::vector<Dimension>& to,
                                     const Ints& dimensions) {
  if (!x) return nullptr;
  const Shape& from = x->shape();
  if (std::ssize(dimensions) != from.rank()) {
    return Fail(InvalidArgument("found broadcast dimensions ", AttrValueText(dimensions), " for ",
                                from, "; expected one for each dimension"));
  }
  Ints kept;
  std::vector<Dimension> sizes;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const int64_t target = dimensions[static_cast<size_t>(d)];
    if (target < 0 || target >= std::ssize(to)) {
      return Fail(InvalidArgument("found broadcast dimension ", target, "; expected 0 to below ",
                                  to.size()));
    }
    const Dimension& size = from.dimension(d);
    if (size == Dimension(1) && size != to[static_cast<size_t>(target)]) continue;
    kept.push_back(target);
    sizes.push_back(size);
  }
  if (std::ssize(sizes) != from.rank()) x = Reshape(x, sizes);
  const Shape declared(from.type(), to);
  bool same = std::ssize(kept) == declared.rank();
  for (size_t d = 0; same && d < kept.size(); ++d) same = kept[d] == static_cast<int64_t>(d);
  if (same && x && x->shape().SameDimensions(declared)) return x;
  return Add(Opcode::kBroadcast, {x}, {{Attr::kDimensions, std::move(kept)}}, &declared);
}

Instruction* Builder::Reshape(Instruction* x, const std::vector<Dimension>& dimensions) {
  if (!x || x->shape().dimensions() == dimensions) return x;
  const Shape declared(x->shape().type(), dimensions);
  return Add(Opcode::kReshape, {x}, {}, &declared);
}

Instruction* Builder::Reshape(Instruction* x, const Ints& dimensions) {
  return Reshape(x, std::vector<Dimension>(dimensions.begin(), dimensions.end()));
}

Instruction* Builder::Transpose(Instruction* x, Ints permutation) {
  bool same = true;
  for (size_t d = 0; d < permutation.size(); ++d) same &= permutation[d] == static_cast<int64_t>(d);
  if (!x || (same && std::ssize(permutation) == x->shape().rank())) return x;
  return Add(Opcode::kTranspose, {x}, {{Attr::kDimensions, std::move(permutation)}});
}

Instruction* Builder::Concatenate(Values parts, int64_t dimension) {
  if (parts.size() == 1) return parts[0];
  return Add(Opcode::kConcatenate, std::move(parts), {{Attr::kDimensions, Ints{dimension}}});
}

Instruction* Builder::Slice(Instruction* x, std::vector<SliceDimension> slices) {
  return Add(Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

Instruction* Builder::Element(Instruction* tuple, int64_t k) {
  if (!tuple || !status_.ok()) return nullptr;
  if (tuple->opcode() == Opcode::kTuple && k >= 0 && k < tuple->operand_count()) {
    return tuple->operand(k);
  }
  return Add(Opcode::kGetTupleElement, {tuple}, {{Attr::kIndex, k}});
}

Instruction* Builder::OneOrTuple(Values values) {
  return values.size() == 1 ? values[0] : Tuple(std::move(values));
}

Instruction* Builder::Reduce(Opcode opcode, Instruction* x, double init, Ints dimensions) {
  if (!x) return nullptr;
  const ElementType type = x->shape().type();
  return Add(Opcode::kReduce, {x, Scalar(type, init)}, {{Attr::kDimensions, std::move(dimensions)}},
             nullptr, {Combiner(opcode, type)});
}

ir::Computation* Builder::Combiner(Opcode opcode, ElementType type) {
  const Shape scalar = Shape::Scalar(type);
  ir::Computation* combiner = computation_->parent()->AddComputation(OpcodeName(opcode));
  Values parameters;
  for (int64_t k = 0; k < 2; ++k) {
    parameters.push_back(combiner->Create({.opcode = Opcode::kParameter,
                                           .attributes = {{Attr::kParameterNumber, k}},
                                           .shape = scalar}));
  }
  combiner->set_root(
      combiner->Create({.opcode = opcode, .operands = std::move(parameters), .shape = scalar}));
  return combiner;
}

}  // namespace kiln::stablehlo
