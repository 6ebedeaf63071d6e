// Makes instructions in a computation: HLO's ops as functions of instructions.
//
// The mode decides on errors. With a user's operands (kChecked: readers, the C ABI) the first
// failure of inference is kept. From then on functions return null, also for null operands; an
// operand's shape may be read only if the operand is not null. With a pass's operands (kTrusted) a
// failure is the pass's own mistake, and kept as INTERNAL. An instruction of the declared shape
// replaces the impossible one, so the pass need not check before its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

class Builder {
 public:
  enum class Operands : uint8_t { kChecked, kTrusted };

  // Before an instruction (null: at the end of the computation). All new instructions have the
  // op_name, which must outlive the builder.
  explicit Builder(Computation* computation, Instruction* before = nullptr,
                   std::string_view op_name = {}, Operands operands = Operands::kChecked)
      : computation_(computation), before_(before), op_name_(op_name), operands_(operands) {}
  // For a pass: before `at`, with its op_name.
  explicit Builder(Instruction* at)
      : Builder(at->parent(), at, at->op_name(), Operands::kTrusted) {}
  virtual ~Builder() = default;

  Computation* computation() const { return computation_; }
  // Null: at the end.
  Instruction* before() const { return before_; }
  bool ok() const { return status_.ok(); }
  // The first failure.
  const Status& status() const { return status_; }
  // Keeps a failure, unless there was one before; null.
  Instruction* Fail(Status status);

  // With the inferred shape; `declared` has the parts not determined by operands (see
  // InferenceInput).
  Instruction* Add(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = {},
                   std::optional<Shape> declared = std::nullopt,
                   std::vector<Computation*> called = {});
  // With a given shape, layout included, checked only by the verifier.
  Instruction* AddShaped(const Shape& shape, Opcode opcode, std::vector<Instruction*> operands,
                         Attributes attributes = {}, std::vector<Computation*> called = {});

  // Elementwise ops.
  Instruction* Unary(Opcode opcode, Instruction* x) { return Add(opcode, {x}); }
  Instruction* Binary(Opcode opcode, Instruction* x, Instruction* y) { return Add(opcode, {x, y}); }
  Instruction* Plus(Instruction* x, Instruction* y) { return Binary(Opcode::kAdd, x, y); }
  Instruction* Minus(Instruction* x, Instruction* y) { return Binary(Opcode::kSubtract, x, y); }
  Instruction* Times(Instruction* x, Instruction* y) { return Binary(Opcode::kMultiply, x, y); }
  Instruction* Over(Instruction* x, Instruction* y) { return Binary(Opcode::kDivide, x, y); }
  Instruction* And(Instruction* x, Instruction* y) { return Binary(Opcode::kAnd, x, y); }
  Instruction* Or(Instruction* x, Instruction* y) { return Binary(Opcode::kOr, x, y); }
  Instruction* Negate(Instruction* x) { return Unary(Opcode::kNegate, x); }
  Instruction* Abs(Instruction* x) { return Unary(Opcode::kAbs, x); }
  Instruction* Compare(Direction direction, Instruction* x, Instruction* y);
  Instruction* Select(Instruction* pred, Instruction* yes, Instruction* no) {
    return Add(Opcode::kSelect, {pred, yes, no});
  }
  // The value in another element type, and the bits in one of the same width; x itself where it has
  // that type.
  Instruction* Convert(Instruction* x, ElementType type);
  Instruction* Bits(Instruction* x, ElementType type);

  // Constants.
  Instruction* Constant(Literal literal);
  Instruction* Constant(std::shared_ptr<const Literal> literal);
  // In a layout of its own; the literal is in row-major order all the same.
  Instruction* Constant(const Shape& shape, std::shared_ptr<const Literal> literal);
  // A number, converted to the type: a scalar, or in all places of a shape or of a value's shape.
  Instruction* Scalar(ElementType type, double value) {
    return Constant(Literal::ScalarOf(type, value));
  }
  Instruction* Number(const Shape& shape, double value) {
    return Spread(shape, Scalar(shape.type(), value));
  }
  Instruction* Number(const Instruction* like, double value) {
    return like ? Number(like->shape(), value) : nullptr;
  }
  Instruction* Splat(const Shape& shape, Literal scalar) {
    return Spread(shape, Constant(std::move(scalar)));
  }
  // Zero bits in all places, which are no zero in a type without one; of a tuple in each element. A
  // token is one that waits for nothing.
  Instruction* Zeros(const Shape& shape);
  Instruction* Iota(const Shape& shape, int64_t dimension);

  // Ops that move elements. No-ops are not made.
  //
  // Dimension k of x is dimension dimensions[k] of the result.
  Instruction* Broadcast(Instruction* x, std::vector<Dimension> sizes, Ints dimensions);
  // A scalar in all places of a shape, whose element type and layout do not matter.
  Instruction* Spread(const Shape& shape, Instruction* scalar);
  // Array x with `size`, a scalar, as the size of dimension d, declared as given: a bound, or a
  // constant that `size` is.
  Instruction* WithSize(Instruction* x, int64_t d, Instruction* size, const Dimension& declared);
  // x, whose dimensions are those of `like` or, where these are bounded, their bounds, with the
  // sizes of `like`.
  Instruction* WithSizesOf(Instruction* like, Instruction* x);
  // x repeated to the dimensions of `like`, by whose sizes it can have bounded dimensions that x
  // lacks. Dimension k of x is dimension dimensions[k] of the result.
  Instruction* BroadcastLike(Instruction* like, Instruction* x, Ints dimensions);
  Instruction* Reshape(Instruction* x, std::vector<Dimension> sizes);
  // Dimension d of the result is dimension permutation[d] of x.
  Instruction* Transpose(Instruction* x, Ints permutation);
  Instruction* Concatenate(std::vector<Instruction*> parts, int64_t dimension);
  Instruction* Slice(Instruction* x, std::vector<SliceDimension> slices);

  // Folds x along dimensions, which the result lacks, by an op of two operands, beginning with a
  // number or a scalar. The reducer has the op's name where none is given.
  Instruction* Reduce(Opcode opcode, Instruction* x, double init, Ints dimensions,
                      std::string_view reducer_name = {});
  Instruction* ReduceFrom(Instruction* init, Opcode opcode, Instruction* x, Ints dimensions,
                          std::string_view reducer_name = {});
  Instruction* Sum(Instruction* x, Ints dimensions) {
    return Reduce(Opcode::kAdd, x, 0.0, std::move(dimensions), "sum");
  }
  // The reducer alone (see AddReducer).
  Computation* Reducer(Opcode opcode, ElementType type, std::string_view name = {});

  // Tuples. An element is the operand of a tuple that is made here.
  Instruction* Tuple(std::vector<Instruction*> elements) {
    return Add(Opcode::kTuple, std::move(elements));
  }
  Instruction* Element(Instruction* tuple, int64_t k);
  // A value, or a tuple of any other number of them.
  Instruction* OneOrTuple(std::vector<Instruction*> values);

  // The next parameter of the computation.
  Instruction* Parameter(const Shape& shape);

 protected:
  // Makes an instruction, whose shape is complete or yet to be inferred. A failure leaves the spec
  // as it was.
  virtual Result<Instruction*> Insert(InstructionSpec& spec, bool is_complete);

 private:
  Instruction* Make(InstructionSpec spec, bool is_complete);

  Computation* computation_;
  Instruction* before_;
  std::string_view op_name_;
  Operands operands_;
  Status status_;
};

// The shape of an instruction by its operands, and by the shape of the spec where these do not
// determine it.
Result<Shape> InferShape(const InstructionSpec& spec);

}  // namespace kiln::ir
