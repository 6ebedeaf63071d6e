// Parts of a graph as modules of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/instruction_map.h"
#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {

// A part of a computation as a module. The entry's parameter k is arguments[k], and element k of
// its result, a tuple, is results[k], all values of the original computation.
struct OutlinedPart {
  std::unique_ptr<ir::Module> module;
  std::vector<ir::Instruction*> arguments;
  std::vector<ir::Instruction*> results;
};

// Makes parts of one computation, which must outlive it. A part takes a time that grows with its
// own size, not with the computation's.
class Outliner {
 public:
  explicit Outliner(const ir::Computation& computation)
      : computation_(computation), states_(computation) {}

  // Copies instructions, operands before users. Values from outside become parameters: first
  // `arguments`, whether used or not, then the others in the order of their first use. Small
  // constants from outside are copied. Control dependencies between the instructions are kept.
  // Names and attributes are those of the originals; the aliases of the module are left out.
  OutlinedPart Outline(std::string_view name, std::span<ir::Instruction* const> instructions,
                       std::vector<ir::Instruction*> arguments,
                       std::vector<ir::Instruction*> results);

 private:
  // Of an instruction: the last part that it is a member of, and the last one that has a copy.
  struct State {
    int32_t member_of = -1, copied_to = -1;
    ir::Instruction* copy = nullptr;
  };
  friend class PartBuilder;

  const ir::Computation& computation_;
  ir::InstructionMap<State> states_;
  int32_t parts_ = 0;
};

// A module for each cluster, with its name. Its results, in the order of the computation, are the
// arrays that are used outside the cluster or are among `fetched`.
std::vector<OutlinedPart> OutlineClusters(const Clustering& clustering,
                                          std::span<const ir::Instruction* const> fetched);

}  // namespace kiln::session
