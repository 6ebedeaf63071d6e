// The stack that code takes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// The sum of all frames in the objects, by the sizes that LLVM writes into them (section
// .stack_sizes): no chain of calls takes more, as generated code does not recur. INTERNAL where an
// object has code without sizes.
Result<size_t> StackBytesOf(const std::vector<std::string>& objects);

}  // namespace kiln::device
