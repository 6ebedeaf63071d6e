// Copies of called computations in another module.
#pragma once

#include <unordered_map>

#include "ir/ir.h"

namespace kiln::session {

// Each computation is copied once, with those that it calls before it, however many callers it has
// and however deep the calls are.
class ComputationCopies {
 public:
  explicit ComputationCopies(ir::Module& to) : to_(to) {}

  // Copies what the instruction calls. The copy of a caller is added after that.
  void Add(const ir::Instruction& caller);
  // Of a computation that has been copied.
  ir::Computation* Of(const ir::Computation* original) const { return copies_.at(original); }

 private:
  void Copy(const ir::Computation& original);

  ir::Module& to_;
  std::unordered_map<const ir::Computation*, ir::Computation*> copies_;
};

}  // namespace kiln::session
