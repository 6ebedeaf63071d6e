#include "compiler/packing.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/contraction.h"

namespace kiln::compiler {
using kernel::ScheduledKernel;

using kernel::CpuGemm;

int64_t PackedLhsBytes(const ScheduledKernel& kernel) {
  const auto* product = std::get_if<CpuGemm>(&kernel.schedule);
  return product && product->gemm->pack_a ? product->gemm->packed_a_bytes : 0;
}

int64_t PackedRhsBytes(const ScheduledKernel& kernel) {
  const auto* product = std::get_if<CpuGemm>(&kernel.schedule);
  if (!product || product->gemm->b != kernel::GemmB::kPrepacked) return 0;
  return product->contraction->problem.b_constant ? 0 : product->gemm->packed_b_bytes;
}

ScheduledKernel PackingKernel(const ScheduledKernel& product, CpuGemm::Role role) {
  const bool left = role == CpuGemm::Role::kPackLhs;
  CpuGemm schedule = std::get<CpuGemm>(product.schedule);
  schedule.role = role;
  const kernel::Contraction& c = *schedule.contraction;
  ScheduledKernel pack;
  pack.kernel.name = Cat(product.kernel.name, left ? "_pack_lhs" : "_pack_rhs");
  pack.kernel.op_names = {Cat(left ? "pack left operand of " : "pack right operand of ",
                              Join(product.kernel.op_names, ", "))};
  kernel::Param source = product.kernel.params[left ? c.a_param : c.b_param];
  int64_t packed_bytes = left ? schedule.gemm->packed_a_bytes : schedule.gemm->packed_b_bytes;
  pack.kernel.params = {
      source,
      {kernel::Param::Role::kOutput, c.problem.type, packed_bytes / ByteWidth(c.problem.type)}};
  if (const auto& prologue = left ? c.a_prologue : c.b_prologue) {
    for (kernel::NodeId other : prologue->others) {
      const kernel::Node& load = product.kernel.stages.front().nodes[other];
      pack.kernel.params.push_back(product.kernel.params[load.param]);
    }
  }
  // The parts of the prologue.
  if (c.a_prologue || c.b_prologue) {
    pack.kernel.stages = {product.kernel.stages.front()};
    pack.kernel.variables = product.kernel.variables;
  }
  pack.kernel.bytes_read = source.elements * ByteWidth(source.type);
  pack.kernel.bytes_written = packed_bytes;
  // Packing moves about as many bytes as a thread moves in the time that it takes to wake one.
  schedule.max_tasks =
      std::clamp<int64_t>(packed_bytes / (256 << 10), 1, std::max<int64_t>(schedule.items(), 1));
  pack.schedule = std::move(schedule);
  return pack;
}

}  // namespace kiln::compiler
