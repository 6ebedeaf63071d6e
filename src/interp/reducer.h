// A reducer of scalar elementwise ops, prepared for element-by-element application.
#pragma once

#include <optional>
#include <vector>

#include "interp/elementwise.h"

namespace kiln::interp {

// The memory of one scalar of any type.
struct ScalarSlot {
  alignas(16) std::byte bytes[16];
};

// A call of a reducer as a computation costs literals and maps per element; this stores its values
// in slots, and applies the evaluator's own elementwise ops to them.
class Reducer {
 public:
  // Nothing if the computation has ops other than elementwise ones, constants and calls.
  static std::optional<Reducer> Make(const ir::Computation& computation);
  Reducer(Reducer&&) = default;

  // The memory of a parameter and of a result, of one scalar each.
  std::byte* parameter(int64_t i) { return At(parameters_[static_cast<size_t>(i)]); }
  const std::byte* result(int64_t i) { return At(results_[static_cast<size_t>(i)]); }
  Status Apply();
  int64_t instruction_count() const { return static_cast<int64_t>(lines_.size()) + 1; }

 private:
  struct Line {
    const ir::Instruction* instruction;
    std::vector<ElementwiseOperand> operands;
    std::byte* out;
  };

  Reducer() = default;
  std::byte* At(size_t slot) { return slots_[slot].bytes; }

  std::vector<ScalarSlot> slots_;
  std::vector<size_t> parameters_, results_;
  std::vector<Line> lines_;
};

}  // namespace kiln::interp
