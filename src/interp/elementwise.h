// Elementwise ops: the semantics of ops.def, by the letter.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::interp {

// One operand's elements in row-major order, in aligned memory.
struct ElementwiseOperand {
  const std::byte* data;
  ElementType type;
  bool repeats;  // a scalar that stands for as many equal elements as there are
};

template <typename T>
class Elements {
 public:
  explicit Elements(const ElementwiseOperand& operand)
      : data_(reinterpret_cast<const T*>(operand.data)), step_(operand.repeats ? 0 : 1) {}
  // In the type of computation.
  ComputeType<T> operator[](int64_t k) const {
    return static_cast<ComputeType<T>>(data_[k * step_]);
  }

 private:
  const T* data_;
  int64_t step_;
};

// `count` elements into `out`, which has the type of the instruction's result; it may be the memory
// of an operand of that type, other than a complex one. Only the opcode, the attributes and the
// element types matter: reducers also use this to apply their instructions to one element at a
// time.
Status EvaluateElementwise(const ir::Instruction& instruction,
                           std::span<const ElementwiseOperand> operands, std::byte* out,
                           int64_t count);

}  // namespace kiln::interp
