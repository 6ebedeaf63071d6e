// Values that are there several times, and fusions that are given as such: what programs of others
// have, and passes of our own make.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/ir.h"

namespace kiln::testing {

// Changes a module, the same way for the same seed, and leaves it valid. The entry, loops, branches
// and calls get more results: such as there are already, again; ops made again of the same
// operands, or a whole subgraph; parameters given through; constants; values that are used inside.
// Some ops become fusions of every kind, some of them in each other, with such results, too. Some
// uses of a value become uses of one that equals it.
void AddRepeats(ir::Module& module, uint64_t seed);

// The random modules of the other makers by turns, with repeats.
std::unique_ptr<ir::Module> RandomRepeatsModule(uint64_t seed);

}  // namespace kiln::testing
