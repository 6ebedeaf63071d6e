// What operations are written with: HLO's ops on instructions, as functions, at the end of a
// computation. The first failure of inference is kept, and from then on nothing is made: a function
// that is given null gives null. So shapes may be asked for of what there was before alone.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace kiln::stablehlo {

using Values = std::vector<ir::Instruction*>;

class Builder {
 public:
  // What is made has the name of an operation of the program, for dumps.
  explicit Builder(ir::Computation* computation, std::string op_name = {})
      : computation_(computation), op_name_(std::move(op_name)) {}

  ir::Computation* computation() const { return computation_; }
  const Status& status() const { return status_; }
  ir::Instruction* Fail(Status status);

  // Of the shape that inference gives; `declared` is what it does not know.
  ir::Instruction* Add(Opcode opcode, Values operands, Attributes attributes = {},
                       const Shape* declared = nullptr, std::vector<ir::Computation*> called = {});

  ir::Instruction* Compare(Direction direction, ir::Instruction* x, ir::Instruction* y);
  ir::Instruction* Select(ir::Instruction* pred, ir::Instruction* yes, ir::Instruction* no) {
    return Add(Opcode::kSelect, {pred, yes, no});
  }
  ir::Instruction* Convert(ir::Instruction* x, ElementType type);
  ir::Instruction* Constant(Literal literal);
  ir::Instruction* Constant(std::shared_ptr<const Literal> literal);
  // A scalar, or a number in all places of a shape, converted to its element type.
  ir::Instruction* Scalar(ElementType type, double value) {
    return Constant(Literal::ScalarOf(type, value));
  }
  ir::Instruction* Number(const Shape& shape, double value);
  // A scalar in all places of a shape, or a vector along one of its dimensions.
  ir::Instruction* Spread(const Shape& shape, ir::Instruction* scalar);
  ir::Instruction* SpreadAlong(const Shape& shape, int64_t dimension, ir::Instruction* vector);
  // StableHLO's broadcast_in_dim, where dimensions of size 1 are repeated, too.
  ir::Instruction* BroadcastInDim(ir::Instruction* x, const std::vector<Dimension>& to,
                                  const Ints& dimensions);
  ir::Instruction* Reshape(ir::Instruction* x, const std::vector<Dimension>& dimensions);
  ir::Instruction* Reshape(ir::Instruction* x, const Ints& dimensions);
  ir::Instruction* Transpose(ir::Instruction* x, Ints permutation);
  ir::Instruction* Concatenate(Values parts, int64_t dimension);
  ir::Instruction* Slice(ir::Instruction* x, std::vector<SliceDimension> slices);
  ir::Instruction* Tuple(Values elements) { return Add(Opcode::kTuple, std::move(elements)); }
  ir::Instruction* Element(ir::Instruction* tuple, int64_t k);
  // A value, or a tuple of any other number of them.
  ir::Instruction* OneOrTuple(Values values);
  // Folds x along dimensions by a commutative op, beginning with a number.
  ir::Instruction* Reduce(Opcode opcode, ir::Instruction* x, double init, Ints dimensions);
  // The computation of two scalars to one that an op is.
  ir::Computation* Combiner(Opcode opcode, ElementType type);

 private:
  ir::Computation* computation_;
  std::string op_name_;
  Status status_;
};

}  // namespace kiln::stablehlo
