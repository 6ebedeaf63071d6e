// A kernel with the schedule for a target.
#pragma once

#include <functional>

#include "base/status.h"
#include "kernel/scheduled_kernel.h"
#include "target/target.h"

namespace kiln::compiler {

// `is_constant` says of a parameter of the kernel whether it is the same in every run: it may then
// be packed once.
Result<kernel::ScheduledKernel> ScheduleKernel(kernel::Kernel kernel, const target::Target& target,
                                               const std::function<bool(int param)>& is_constant);

// Bytes of scratch that a launch of the kernel takes as its last argument; 0 for none.
int64_t ScratchBytes(const kernel::ScheduledKernel& kernel, const target::Target& target);

// Of that, before the kernel's own: what its operands take that are packed in every run.
int64_t PackedLhsBytes(const kernel::ScheduledKernel& kernel);
int64_t PackedRhsBytes(const kernel::ScheduledKernel& kernel);

// The kernel that packs the left (kPackLhs) or the right operand (kPackRhs) of a product.
kernel::ScheduledKernel PackingKernel(const kernel::ScheduledKernel& product,
                                      kernel::ScheduledKernel::Form form);

}  // namespace kiln::compiler
