// Values of bounded dimensions: literals of their actual sizes.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "ir/resize.h"
#include "tensor/literal.h"

namespace kiln::interp {

using ir::MayBe;

// Whether the op's shape, or one of its operands', has a dimension that is not a constant.
bool HasUnknownSizes(const ir::Instruction& i);

// The instruction as declared with the actual sizes of its operands: with the inferred shape, and
// with these sizes in attributes that cover a whole dimension.
class SizedInstruction {
 public:
  // Fails if the sizes do not fit the op, or do not determine its result's.
  static Result<SizedInstruction> Of(const ir::Instruction& i,
                                     std::span<const Literal* const> operands);
  const ir::Instruction& operator*() const { return *instruction_; }

 private:
  SizedInstruction() = default;

  std::unique_ptr<ir::Module> module_;
  const ir::Instruction* instruction_ = nullptr;
};

// The operands of an elementwise op in equal sizes, by XLA's rule. Of several sizes of a bounded
// dimension the smallest counts, but for 1: the only element is repeated. Empty where they are
// equal.
std::vector<Literal> OperandsOfEqualSizes(const ir::Instruction& i,
                                          std::span<const Literal* const> operands);

// The operand cut to a size, or grown by zeros.
Result<Literal> EvaluateSetDimensionSize(const ir::Instruction& i,
                                         std::span<const Literal* const> operands);

}  // namespace kiln::interp
