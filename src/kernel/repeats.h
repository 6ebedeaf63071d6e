// Work that kernels repeat for elements that they read at several places.
#pragma once

#include "ir/ir.h"

namespace kiln::kernel {

// Whether overlapping windows of the consumer, a fusion, read elements of the producer several
// times and would compute or gather them each time, where they are else computed once: in the
// epilogue of a dot or a reduction, in the kernel that puts parts together, or in that of a
// transpose or of padding. Parts are not transposed where they are put together, either.
bool WindowsRepeat(const ir::Instruction& producer, const ir::Instruction& consumer);

}  // namespace kiln::kernel
