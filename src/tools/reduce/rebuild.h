// A module rebuilt with edits: the steps of reducing a failing module.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::tools {

// The replacement of an instruction.
struct Replacement {
  enum class Kind : uint8_t { kOperand, kParameter, kZero, kOne };
  Kind kind = Kind::kZero;
  int64_t operand = 0;  // of kOperand: which one; it has the instruction's shape
};

struct Edits {
  // The entry's results; empty keeps its root. Several become a tuple.
  std::vector<const ir::Instruction*> results;
  std::unordered_map<const ir::Instruction*, Replacement> replaced;
  // Dimensions of these sizes get others, everywhere.
  std::map<int64_t, int64_t> sizes;
};

// Without unused instructions, and unused parameters of the entry. Fails if the edits do not fit
// the ops. Parameters that replace instructions come after the others.
Result<std::unique_ptr<ir::Module>> Rebuild(const ir::Module& module, const Edits& edits);

}  // namespace kiln::tools
