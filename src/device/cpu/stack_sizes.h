// The stack that the code of an object takes.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace kiln::device {

// The sum of all frames in the object, by the sizes that LLVM writes into it (section
// .stack_sizes): no chain of calls takes more, as generated code does not recur. INTERNAL where the
// object has code without sizes.
Result<size_t> StackBytesOf(const std::string& object);

}  // namespace kiln::device
