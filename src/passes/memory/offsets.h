// Puts buffers with lifetimes into one arena.
#pragma once

#include <cstdint>
#include <span>

#include "passes/memory/buffer_assignment.h"

namespace kiln::passes {

// Gives each buffer of kind kArena an offset, such that buffers alive at one time do not overlap,
// and returns the arena's size: at most the size by first fit in the order of time.
int64_t AssignOffsets(std::span<Buffer> buffers, int64_t alignment);

}  // namespace kiln::passes
