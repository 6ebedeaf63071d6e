// Values that are known when importing: what operands that say shapes depend on is evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::stablehlo {

class Folder {
 public:
  // The value of an instruction, or null where it is not known, or too large to find out.
  std::shared_ptr<const Literal> Find(const ir::Instruction* instruction);
  // A parameter's value in a function that is imported for it.
  void Set(const ir::Instruction* parameter, std::shared_ptr<const Literal> value) {
    values_[parameter] = std::move(value);
  }

 private:
  std::shared_ptr<const Literal> Evaluate(const ir::Instruction& instruction);

  // Null for those that are not known.
  std::unordered_map<const ir::Instruction*, std::shared_ptr<const Literal>> values_;
  int64_t evaluated_bytes_ = 0;
};

}  // namespace kiln::stablehlo
