// How much stack the code of an object takes.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace kiln::device {

// The most that a chain of calls in the object takes, by the sizes of frames that LLVM writes into
// it (section .stack_sizes). INTERNAL where it has none.
Result<size_t> StackBytesOf(const std::string& object);

}  // namespace kiln::device
