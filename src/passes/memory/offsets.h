// Puts buffers with lifetimes into one arena.
#pragma once

#include <cstdint>
#include <span>

#include "passes/memory/buffer_assignment.h"

namespace kiln::passes {

// Gives each buffer of kind kArena an offset such that no two overlap that live at one time, and
// returns the arena's size. At most as much as a first fit in the order of time takes.
int64_t AssignOffsets(std::span<Buffer> buffers, int64_t alignment);

}  // namespace kiln::passes
