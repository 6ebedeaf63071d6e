// What tests of saved programs share.
#pragma once

#include <random>
#include <string>

#include "program/program.h"
#include "target/target.h"

namespace kiln::testing {

// A module with a loop, a conditional, a sort, calls of the library, constants large and small,
// packed weights, an alias, a layout, a tuple.
std::string EveryKindOfStep();

// Compiled so that what loads it can be saved.
program::Artefact CompileToSave(const std::string& text, const target::Target& target);

// The bytes, which must be possible.
std::string Saved(const program::Artefact& artefact);

// The bytes with a bit, a few bytes, or the end changed.
std::string Mutated(std::string bytes, std::mt19937& random);

}  // namespace kiln::testing
