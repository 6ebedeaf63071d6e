// The initial state of random numbers without an explicit state.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

// A key of this process and a counter, with `count` numbers from it reserved for the caller. The
// key is drawn on first use, or is the number in the environment variable KILN_RANDOM_SEED: then a
// process that runs its programs in a fixed order repeats the numbers. Any thread.
std::array<uint64_t, 2> NextRandomState(int64_t count);

}  // namespace kiln
