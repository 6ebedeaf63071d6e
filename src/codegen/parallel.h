// Work on modules side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace kiln::codegen {

// Calls work(i) for every i below `count`, on at most so many threads, the caller's among them, and
// returns when all is done. Fewer threads than could be had are no failure. What a call throws, the
// first of it, is thrown here.
void InParallel(size_t threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace kiln::codegen
