// A name for what a module, or a computation, computes.
#pragma once

#include <string>
#include <string_view>

#include "base/hash.h"
#include "ir/ir.h"

namespace kiln::ir {

// "add" of "add.7": such a number makes a name unique, and depends on what else has been named.
std::string_view StemOf(std::string_view name);

// Equal for modules that are equal but for the names of computations, the numbers at the end of the
// names of the module and of instructions, ids, and frontend attributes: the compiler replaces
// those that it reads by its options. Different modules have different digests: computations,
// instructions with their attributes, shapes, layouts and control dependencies, the elements of
// constants, the names of the entry's parameters, op names and aliases all take part. Any module,
// also one that the verifier would refuse. Takes about a sixth of a microsecond per instruction,
// and the time of reading the constants.
Digest DigestOf(const Module& module);

// A text that is equal for computations that are equal but for names, op names, ids and frontend
// attributes, with all that they call: parameters, root, instructions in their order with
// attributes, shapes and layouts, and the elements of constants.
std::string FormOf(const Computation& computation);

}  // namespace kiln::ir
