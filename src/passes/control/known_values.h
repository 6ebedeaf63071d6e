// Small values derived from known elements of a loop's state.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// The known elements of a loop's state. A state that is no tuple is one element.
using Known = std::vector<std::optional<Literal>>;

// The values of a computation's instructions, as far as its parameter's elements determine them.
class KnownValues {
 public:
  KnownValues(const ir::Computation& computation, const Known& state);

  std::optional<Literal> Of(const ir::Instruction* i) const;

 private:
  std::optional<Literal> Evaluate(const ir::Instruction& i, const Known& state) const;

  std::unordered_map<const ir::Instruction*, Literal> values_;
};

// The known initial elements of a loop: small constants.
Known StateOf(const ir::Instruction* x);
// The known elements at the end of an iteration.
Known NextState(const ir::Computation& body, const KnownValues& values);

}  // namespace kiln::passes
