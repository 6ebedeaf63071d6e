// What expansions are written with: ops on instructions, as functions. All of them are made before
// one instruction, of shapes that are inferred.
#pragma once

#include <initializer_list>
#include <vector>

#include "ir/ir.h"

namespace kiln::kernel {
class Scheduler;  // kernel/schedule/scheduler.h
}

namespace kiln::passes::expand {

class Builder {
 public:
  // Before `at` (null: at the end), in the name of `from`: what is made has its op_name.
  Builder(ir::Computation* computation, ir::Instruction* at, const ir::Instruction* from)
      : computation_(computation), at_(at), from_(from) {}
  explicit Builder(ir::Instruction* at) : Builder(at->parent(), at, at) {}
  // In code for a target, where that matters.
  Builder(ir::Instruction* at, const kernel::Scheduler& scheduler) : Builder(at) {
    scheduler_ = &scheduler;
  }

  // Of a shape that inference gives; `declared` is what it does not (see InferenceInput). Operands
  // are such as inference takes: whoever expands a module that is valid makes a valid one.
  ir::Instruction* Add(Opcode opcode, std::vector<ir::Instruction*> operands,
                       Attributes attributes = {}, std::optional<Shape> declared = std::nullopt,
                       std::vector<ir::Computation*> called = {});

  ir::Instruction* Unary(Opcode opcode, ir::Instruction* x) { return Add(opcode, {x}); }
  ir::Instruction* Binary(Opcode opcode, ir::Instruction* x, ir::Instruction* y) {
    return Add(opcode, {x, y});
  }
  ir::Instruction* Plus(ir::Instruction* x, ir::Instruction* y) {
    return Binary(Opcode::kAdd, x, y);
  }
  ir::Instruction* Minus(ir::Instruction* x, ir::Instruction* y) {
    return Binary(Opcode::kSubtract, x, y);
  }
  ir::Instruction* Times(ir::Instruction* x, ir::Instruction* y) {
    return Binary(Opcode::kMultiply, x, y);
  }
  ir::Instruction* Over(ir::Instruction* x, ir::Instruction* y) {
    return Binary(Opcode::kDivide, x, y);
  }
  ir::Instruction* Negate(ir::Instruction* x) { return Unary(Opcode::kNegate, x); }
  ir::Instruction* Abs(ir::Instruction* x) { return Unary(Opcode::kAbs, x); }
  ir::Instruction* Compare(Direction direction, ir::Instruction* x, ir::Instruction* y);
  ir::Instruction* Select(ir::Instruction* pred, ir::Instruction* yes, ir::Instruction* no) {
    return Add(Opcode::kSelect, {pred, yes, no});
  }
  ir::Instruction* And(ir::Instruction* x, ir::Instruction* y) {
    return Binary(Opcode::kAnd, x, y);
  }
  ir::Instruction* Or(ir::Instruction* x, ir::Instruction* y) { return Binary(Opcode::kOr, x, y); }
  ir::Instruction* Convert(ir::Instruction* x, ElementType type);
  // The bits in a type of the same width.
  ir::Instruction* Bits(ir::Instruction* x, ElementType type);

  ir::Instruction* Constant(Literal literal);
  // A number in every place of an array like x, or of a type and dimensions.
  ir::Instruction* Number(const ir::Instruction* like, double value);
  ir::Instruction* Number(const Shape& shape, double value);
  ir::Instruction* Splat(const Shape& shape, Literal scalar);
  ir::Instruction* Spread(const Shape& shape, ir::Instruction* scalar);

  ir::Instruction* Reshape(ir::Instruction* x, std::vector<Dimension> dimensions);
  ir::Instruction* Concatenate(std::vector<ir::Instruction*> parts, int64_t dimension);
  // Along dimensions, beginning at 0.
  ir::Instruction* Sum(ir::Instruction* x, Ints dimensions);
  ir::Instruction* Tuple(std::vector<ir::Instruction*> elements) {
    return Add(Opcode::kTuple, std::move(elements));
  }
  ir::Instruction* Element(ir::Instruction* tuple, int64_t k) {
    return ir::ElementOf(tuple, k, at_);
  }

  // The value in the layouts of a shape that is like its own but for those: copies, where they are
  // others.
  ir::Instruction* InLayout(ir::Instruction* value, const Shape& shape);

  ir::Computation* computation() const { return computation_; }
  ir::Instruction* at() const { return at_; }
  // Null where it does not matter.
  const kernel::Scheduler* scheduler() const { return scheduler_; }
  // The first failure of inference: a mistake of the expansion.
  const Status& status() const { return status_; }

 private:
  ir::Computation* computation_;
  ir::Instruction* at_;
  const ir::Instruction* from_;
  const kernel::Scheduler* scheduler_ = nullptr;
  Status status_;
};

}  // namespace kiln::passes::expand
