// Puts buffers with lifetimes into one arena, and into results' memory.
#pragma once

#include <cstdint>
#include <span>

#include "passes/memory/buffer_assignment.h"

namespace kiln::passes {

// Gives each buffer of kind kArena an offset, such that buffers alive at one time do not overlap,
// and returns the arena's size: at most the size by first fit in the order of time, and a 64th more
// for arrays that are spread in their pages (base/spread.h). If the arena becomes smaller by it,
// large buffers that die before a result is made are moved to its memory, and become of kind
// kResult.
int64_t AssignOffsets(std::span<Buffer> buffers, int64_t alignment);

}  // namespace kiln::passes
