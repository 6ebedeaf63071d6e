// Operands of gemms that are packed before the gemm.
#pragma once

#include "kernel/scheduled_kernel.h"

namespace kiln::compiler {

// Bytes of scratch, before the gemm's own, that its operands take which are packed in every run.
int64_t PackedLhsBytes(const kernel::ScheduledKernel& kernel);
int64_t PackedRhsBytes(const kernel::ScheduledKernel& kernel);

// The kernel that packs the left (kPackLhs) or the right operand (kPackRhs) of a gemm.
kernel::ScheduledKernel PackingKernel(const kernel::ScheduledKernel& gemm,
                                      kernel::CpuGemm::Role role);

}  // namespace kiln::compiler
