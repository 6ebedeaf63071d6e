// Work that kernels repeat for elements that they read at several places.
#pragma once

#include "ir/ir.h"

namespace kiln::kernel {

class Scheduler;  // schedule/scheduler.h

// Whether overlapping windows of the consumer, a fusion, read elements of the producer several
// times and would compute or gather them each time, where they are else computed once: in the
// epilogue of a dot or a reduction, in the kernel that puts parts together, or in that of a
// transpose or of padding. Parts are not transposed where they are put together, either.
bool WindowsRepeat(const ir::Instruction& producer, const ir::Instruction& consumer);

// Whether a kernel of the producer and the consumer would be too much code, or repeat too much
// work, as the consumer wants the producer's elements at too many places, or between elements that
// are put apart again.
bool RepeatsTooMuch(const ir::Instruction& producer, const ir::Instruction& consumer,
                    const Scheduler& scheduler);

// Whether an op is code to speak of. Values that exist are not, nor views of them; a slice has
// offsets and strides.
bool IsCode(Opcode opcode);

// Whether work for each of the values is little beside work for each of the others: they are spread
// over them.
bool AreFewBeside(const Shape& values, const Shape& others);

// The arithmetic for an element of the instruction's result, as a number of ops: a kernel evaluates
// the operand of a pad or a concatenation, smaller as it may be, for each of their elements, and
// once for each place at which it wants it.
int64_t ArithmeticOf(const ir::Instruction& instruction);

}  // namespace kiln::kernel
