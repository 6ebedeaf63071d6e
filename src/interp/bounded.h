// Values of bounded dimensions: literals of the sizes that they have.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

// Whether a value of known sizes may be one of a declared shape, where bounds are met by what is
// within them.
bool MayBe(const Shape& sizes, const Shape& declared);

// Whether the op's shape, or one of its operands', has a dimension that is not a constant.
bool HasUnknownSizes(const ir::Instruction& i);

// An instruction as it would be if its operands had been declared with the sizes that they have:
// with the shape that these give, and with them in attributes that take a dimension whole.
class SizedInstruction {
 public:
  // Fails where the sizes do not fit the op, or do not tell its result's.
  static Result<SizedInstruction> Of(const ir::Instruction& i,
                                     std::span<const Literal* const> operands);
  const ir::Instruction& operator*() const { return *instruction_; }

 private:
  SizedInstruction() = default;

  std::unique_ptr<ir::Module> module_;
  const ir::Instruction* instruction_ = nullptr;
};

// The operand cut to a size, or grown by zeros.
Result<Literal> EvaluateSetDimensionSize(const ir::Instruction& i,
                                         std::span<const Literal* const> operands);

}  // namespace kiln::interp
