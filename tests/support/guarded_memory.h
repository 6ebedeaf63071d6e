// Memory that shows who leaves it: what lies beyond an allocation cannot be touched, or is seen to
// have changed; and what nobody has written is NaN.
#pragma once

#include "runtime/arena.h"

namespace kiln::testing {

// Hooks that end every allocation, rounded up to 64 bytes, at a page that cannot be accessed, and
// begin with another one. Bytes up to the rounded end must stay as they are; deallocation adds a
// failure to the test where they do not. New memory holds 0xff bytes.
runtime::AllocatorHooks GuardedMemory();

}  // namespace kiln::testing
