// The builder of derivatives: instructions at the end of a computation.
#pragma once

#include <utility>

#include "grad/derivative.h"
#include "grad/replacements.h"
#include "ir/builder.h"

namespace kiln::grad {

class Builder : public ir::Builder {
 public:
  explicit Builder(ir::Computation* computation)
      : ir::Builder(computation, nullptr, {}, Operands::kTrusted), replacements_(computation) {}

  // Of ops whose results the derivative adds to.
  Replacements& replacements() { return replacements_; }

  // New instructions belong to this one: they get its op_name and its frontend attributes, among
  // them the marks for sessions, so that a derivative runs where the op does. Returns the former.
  const ir::Instruction* SetOrigin(const ir::Instruction* origin) {
    return std::exchange(origin_, origin);
  }

  // Whether the derivative of the op at hand may be 0 in some places because a select has masked
  // them. Returns the former.
  bool SetMasked(bool is_masked) { return std::exchange(is_masked_, is_masked); }

  using ir::Builder::Zeros;
  // Arrays with the sizes of another one, whose dimensions may be bounded.
  ir::Instruction* Zeros(ir::Instruction* like) { return Number(like, 0); }
  using ir::Builder::Number;
  ir::Instruction* Number(ir::Instruction* like, double value) {
    return BroadcastLike(like, Scalar(like->shape().type(), value), {});
  }
  ir::Instruction* IotaLike(ir::Instruction* like, ElementType type, int64_t dimension);
  // Of dimension d of x, as s32: a constant where that is known.
  ir::Instruction* SizeOf(ir::Instruction* x, int64_t d);
  // The array or tuple, with zeros where the derivative has none. Integers have zeros too.
  ir::Instruction* Whole(const Derivative& derivative, const Shape& shape);
  // The same of a value, which may have bounded dimensions.
  ir::Instruction* Whole(const Derivative& derivative, ir::Instruction* x) {
    if (!x->shape().is_array()) return Whole(derivative, x->shape());
    return derivative.array ? derivative.array : Zeros(x);
  }
  // The derivative of a value as an array or a tuple.
  Derivative Parts(ir::Instruction* whole);
  // a + b
  Derivative Accumulate(const Derivative& a, const Derivative& b);
  ir::Instruction* Accumulate(ir::Instruction* a, ir::Instruction* b);

  // t * factor, but of real numbers 0 where t is, however large the factor: a branch that a select
  // masks stays out of the derivative.
  ir::Instruction* Scaled(ir::Instruction* t, ir::Instruction* factor) {
    return IsFloat(t->shape().type()) ? Binary(Opcode::kMultiplyNoNan, t, factor)
                                      : Times(t, factor);
  }
  // The same for a factor that is finite unless the user's values are not: free where no select
  // masks t.
  ir::Instruction* ScaledIfMasked(ir::Instruction* t, ir::Instruction* factor) {
    return is_masked_ ? Scaled(t, factor) : Times(t, factor);
  }
  ir::Instruction* SumOfAll(ir::Instruction* x);
  // The part of x along dimension d.
  ir::Instruction* SliceAlong(ir::Instruction* x, int64_t d, SliceDimension slice);
  // Whether x is the identity of a reducer's op: an initial value that is never the result.
  static bool IsIdentity(Opcode opcode, const ir::Instruction* x);
  // Fails if the op calls a computation that is no sum.
  void RequireSum(const ir::Instruction* op);
  // x where the pred holds, else 0.
  ir::Instruction* Masked(ir::Instruction* pred, ir::Instruction* x) {
    return Select(pred, x, Zeros(x));
  }

 protected:
  Result<ir::Instruction*> Insert(ir::InstructionSpec& spec, bool is_complete) override;

 private:
  const ir::Instruction* origin_ = nullptr;
  bool is_masked_ = false;
  Replacements replacements_;
};

}  // namespace kiln::grad
