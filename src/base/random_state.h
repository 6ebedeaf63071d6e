// Where random numbers begin that nobody gave a state.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

// A key of this process and a counter, from which on `count` numbers are the caller's alone. The
// key is drawn when the process first asks, or is the number in the environment variable
// KILN_RANDOM_SEED, by which a process that runs its programs in one order has the same numbers
// again. Any thread.
std::array<uint64_t, 2> NextRandomState(int64_t count);

}  // namespace kiln
