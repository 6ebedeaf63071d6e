// A module as a Graphviz graph: computations and fusions as clusters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/ir.h"

namespace kiln::draw {

std::string ToDot(const ir::Module& module);

// Of larger graphs a part is drawn: Graphviz takes minutes for them, and they are unreadable.
inline constexpr int64_t kMostDotNodes = 2000;

// A text inside of a string in quotes, whose own escapes ("\n", "\l") do not arise from it.
std::string EscapeDot(std::string_view text);

}  // namespace kiln::draw
