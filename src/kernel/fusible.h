// Fast tests whether instructions may become one kernel, for the fusion pass.
#pragma once

#include <cstdint>
#include <string>

#include "ir/ir.h"
#include "kernel/build.h"

namespace kiln::kernel {

class FusionAnalysis;  // fusion_analysis.h
class Scheduler;       // schedule/scheduler.h

// The role of an instruction (or of a fusion, by its computation) in a kernel.
enum class FusionRole : uint8_t {
  kNone,       // no part of a kernel: control flow, tuples, parameters
  kElemental,  // a formula at any index
  kReduce,     // holds one reduction, or several over the same dimensions of the same shape
  kDot,        // holds one dot
  kRows,       // reductions over the same dimensions whose results are used on what was reduced:
               // softmax, normalisations
  kWindow,     // holds one reduction over windows, or a scan
  kScatter,    // is a scatter, and what its indices and updates are made of
  kSort,       // is a sort or a topk, and what its operands are made of
  kBundle,     // is several kernels side by side (bundle.h)
  kChain,      // is a gemm and a kernel over the rows that it makes (chain.h)
};
FusionRole RoleOf(const ir::Instruction& instruction);

struct FusionDecision {
  bool fuse = false;
  std::string why_not;  // for dumps
};

// Whether `producer` may be computed inside `consumer`'s kernel (either may be a fusion already).
FusionDecision CanFuseProducer(const ir::Instruction& producer, const ir::Instruction& consumer,
                               const Scheduler& scheduler);
// Whether two kernels that do not depend on each other may become one with the outputs of both.
FusionDecision CanFuseSiblings(const ir::Instruction& a, const ir::Instruction& b,
                               const Scheduler& scheduler);

// Whether `consumer` may be computed in the kernel of `producer`, of which others use results, too:
// both walk the same points, and the consumer reads the producer's elements where it writes its
// own.
FusionDecision CanFuseKeeping(const ir::Instruction& producer, const ir::Instruction& consumer,
                              const Scheduler& scheduler);

// The cost of a kernel for the instruction: bytes of its operands and results, and operations.
// Decides whether a fusion pays.
struct Cost {
  int64_t bytes_read = 0, bytes_written = 0, flops = 0, transcendentals = 0;
};
Cost CostOf(const ir::Instruction& instruction);

// Whether the computation of a fusion whose root is a dynamic-update-slice reads the updated array
// at other places than the element that is written: its kernel writes all of a new array.
bool ReadsBesideUpdate(const ir::Instruction& root);

// The operand that output `output` of the instruction's kernel is, but for the part that the kernel
// writes: the two should share memory, otherwise the operand is copied. -1 if the output is
// completely written.
int64_t UpdatedOperand(const ir::Instruction& instruction, int64_t output);

// Whether the kernel reads each element of operand `operand` only at the index at which it writes
// output `output`, so that both may share their memory.
bool MayShareBuffer(const ir::Instruction& instruction, int64_t operand, int64_t output,
                    FusionAnalysis& analysis);
// The same of the kernel that is known to be the instruction's, and of one of its inputs.
bool KernelMayShare(const ir::Instruction& instruction, const Kernel& kernel, ParamId input,
                    int64_t output);

}  // namespace kiln::kernel
