// Operands of matrix products that are packed before the product.
#pragma once

#include "kernel/scheduled_kernel.h"

namespace kiln::compiler {

// Bytes of scratch, before the product's own, that its operands take which are packed in every run.
int64_t PackedLhsBytes(const kernel::ScheduledKernel& kernel);
int64_t PackedRhsBytes(const kernel::ScheduledKernel& kernel);

// The kernel that packs the left (kPackLhs) or the right operand (kPackRhs) of a product.
kernel::ScheduledKernel PackingKernel(const kernel::ScheduledKernel& product,
                                      kernel::CpuGemm::Role role);

}  // namespace kiln::compiler
