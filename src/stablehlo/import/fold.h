// Values known at import: the inputs of shape operands are evaluated.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/interrupt.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::stablehlo {

class Folder {
 public:
  explicit Folder(const Interrupt& interrupt) : interrupt_(interrupt) {}

  // The value of an instruction, or null if unknown or too expensive.
  std::shared_ptr<const Literal> Find(const ir::Instruction* instruction);
  // The known value of a parameter in a specialised function.
  void Set(const ir::Instruction* parameter, std::shared_ptr<const Literal> value) {
    values_[parameter] = std::move(value);
  }

 private:
  bool MayFold(const ir::Instruction& instruction, int depth);
  bool MayFold(const ir::Computation& computation, int depth);
  std::shared_ptr<const Literal> Evaluate(const ir::Instruction& instruction);

  // Null for unknown ones.
  std::unordered_map<const ir::Instruction*, std::shared_ptr<const Literal>> values_;
  // By the depth of the computation in folded calls.
  std::map<std::pair<const ir::Computation*, int>, bool> foldable_;
  const Interrupt interrupt_;
  int64_t evaluated_bytes_ = 0, work_ = 0;
};

}  // namespace kiln::stablehlo
