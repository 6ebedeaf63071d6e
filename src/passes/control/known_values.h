// Small values that follow from what is known of a loop's state.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// The elements of a loop's state that are known, one by one; a state that is no tuple is one.
using Known = std::vector<std::optional<Literal>>;

// What the instructions of a computation are, as far as that follows from its parameter's elements.
class KnownValues {
 public:
  KnownValues(const ir::Computation& computation, const Known& state);

  std::optional<Literal> Of(const ir::Instruction* i) const;

 private:
  std::optional<Literal> Evaluate(const ir::Instruction& i, const Known& state) const;

  std::unordered_map<const ir::Instruction*, Literal> values_;
};

// What is known of the elements that a loop begins with: small constants.
Known StateOf(const ir::Instruction* x);
// What is known of those that an iteration of its body ends with.
Known NextState(const ir::Computation& body, const KnownValues& values);

}  // namespace kiln::passes
