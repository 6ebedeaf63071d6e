// Parts of a graph as modules of their own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Copies instructions of one computation, operands before users. Values from outside become
// parameters: first `arguments`, whether used or not, then the others in the order of their first
// use. Small constants from outside are copied. Control dependencies between the instructions are
// kept. Names and attributes are those of the originals; the aliases of the module are left out.
OutlinedPart OutlinePart(std::string_view name, std::span<ir::Instruction* const> instructions,
                         std::vector<ir::Instruction*> arguments,
                         std::vector<ir::Instruction*> results);

// A module for each cluster, with its name. Its results, in the order of the computation, are the
// arrays that are used outside the cluster or are among `fetched`.
std::vector<OutlinedPart> OutlineClusters(const Clustering& clustering,
                                          std::span<const ir::Instruction* const> fetched);

}  // namespace kiln::session
