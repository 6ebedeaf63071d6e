#include "compiler/packing.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/contraction.h"

namespace kiln::compiler {
using kernel::ScheduledKernel;

using kernel::CpuGemm;

int64_t PackedLhsBytes(const ScheduledKernel& kernel) {
  const auto* gemm = std::get_if<CpuGemm>(&kernel.schedule);
  return gemm && gemm->schedule->pack_a ? gemm->schedule->packed_a_bytes : 0;
}

int64_t PackedRhsBytes(const ScheduledKernel& kernel) {
  const auto* gemm = std::get_if<CpuGemm>(&kernel.schedule);
  if (!gemm || gemm->schedule->b != kernel::GemmB::kPrepacked) return 0;
  return gemm->contraction->problem.b_constant ? 0 : gemm->schedule->packed_b_bytes;
}

ScheduledKernel PackingKernel(const ScheduledKernel& gemm, CpuGemm::Role role) {
  const bool left = role == CpuGemm::Role::kPackLhs;
  CpuGemm packing = std::get<CpuGemm>(gemm.schedule);
  packing.role = role;
  const kernel::Contraction& c = *packing.contraction;
  ScheduledKernel pack;
  pack.kernel.name = Cat(gemm.kernel.name, left ? "_pack_lhs" : "_pack_rhs");
  pack.kernel.op_names = {Cat(left ? "pack left operand of " : "pack right operand of ",
                              Join(gemm.kernel.op_names, ", "))};
  kernel::Param source = gemm.kernel.params[left ? c.a_param : c.b_param];
  int64_t packed_bytes = left ? packing.schedule->packed_a_bytes : packing.schedule->packed_b_bytes;
  pack.kernel.params = {
      source,
      {kernel::Param::Role::kOutput, c.problem.type, packed_bytes / ByteWidth(c.problem.type)}};
  if (const auto& prologue = left ? c.a_prologue : c.b_prologue) {
    for (kernel::NodeId other : prologue->others) {
      const kernel::Node& load = gemm.kernel.stages.front().nodes[other];
      pack.kernel.params.push_back(gemm.kernel.params[load.param]);
    }
  }
  // The parts of the prologue.
  if (c.a_prologue || c.b_prologue) {
    pack.kernel.stages = {gemm.kernel.stages.front()};
    pack.kernel.variables = gemm.kernel.variables;
  }
  pack.kernel.bytes_read = source.elements * ByteWidth(source.type);
  pack.kernel.bytes_written = packed_bytes;
  // Packing moves about as many bytes as a thread moves in the time that it takes to wake one.
  packing.max_tasks =
      std::clamp<int64_t>(packed_bytes / (256 << 10), 1, std::max<int64_t>(packing.items(), 1));
  pack.schedule = std::move(packing);
  return pack;
}

}  // namespace kiln::compiler
