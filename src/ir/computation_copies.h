// Copies of computations, with their callees, in the same or in another module.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/ir.h"

namespace kiln::ir {

// Each computation is copied once, with those that it calls before it, however many callers it has
// and however deep the calls are.
class ComputationCopies {
 public:
  // `mapping`, if given, receives old instruction to new.
  explicit ComputationCopies(
      Module& to, std::unordered_map<const Instruction*, Instruction*>* mapping = nullptr)
      : to_(to), mapping_(mapping) {}

  // Copies a computation, under that name, and what it calls, under their own names.
  Computation* Add(const Computation& computation, std::string name);
  // Copies what the instruction calls. The copy of a caller is added after that.
  void AddCallees(const Instruction& caller);
  // Of a computation that has been copied.
  Computation* Of(const Computation* original) const { return copies_.at(original); }

 private:
  void AddWithCallees(const Computation& computation, const std::string& name);
  void Copy(const Computation& original, const std::string& name);

  Module& to_;
  std::unordered_map<const Instruction*, Instruction*>* mapping_;
  std::unordered_map<const Computation*, Computation*> copies_;
};

}  // namespace kiln::ir
