// The stack use of code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// The sum of all frames in the objects, from LLVM's section .stack_sizes: an upper bound, because
// generated code has no recursion. INTERNAL if an object has code without sizes.
Result<size_t> StackBytesOf(const std::vector<std::string>& objects);

}  // namespace kiln::device
