// docs/flags.md, from the table of flags.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "flags/table.h"

namespace kiln::gen {

// The page of these flags and variables. Flags that nothing reads, and sections without a flag, are
// left out. `notice` is for its head.
std::string FlagsPage(std::string_view notice, std::span<const flags::FlagInfo> flags,
                      std::span<const flags::VariableInfo> variables);

// Holds the table of variables against the sources below `root`: each getenv() needs a row, and
// each row a getenv().
Status CheckVariables(const std::string& root, std::span<const flags::VariableInfo> variables);

}  // namespace kiln::gen
