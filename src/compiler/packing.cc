#include "compiler/packing.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/contraction.h"

namespace kiln::compiler {
using kernel::ScheduledKernel;

int64_t PackedLhsBytes(const ScheduledKernel& kernel) {
  return kernel.gemm && kernel.gemm->pack_a ? kernel.gemm->packed_a_bytes : 0;
}

int64_t PackedRhsBytes(const ScheduledKernel& kernel) {
  if (!kernel.gemm || kernel.gemm->b != kernel::GemmB::kPrepacked) return 0;
  return kernel.contraction->problem.b_constant ? 0 : kernel.gemm->packed_b_bytes;
}

ScheduledKernel PackingKernel(const ScheduledKernel& product, ScheduledKernel::Form form) {
  bool left = form == ScheduledKernel::Form::kPackLhs;
  const kernel::Contraction& c = *product.contraction;
  ScheduledKernel pack;
  pack.form = form;
  pack.contraction = product.contraction;
  pack.gemm = product.gemm;
  pack.kernel.name = Cat(product.kernel.name, left ? "_pack_lhs" : "_pack_rhs");
  pack.kernel.op_names = {Cat(left ? "pack left operand of " : "pack right operand of ",
                              Join(product.kernel.op_names, ", "))};
  kernel::Param source = product.kernel.params[left ? c.a_param : c.b_param];
  int64_t packed_bytes = left ? product.gemm->packed_a_bytes : product.gemm->packed_b_bytes;
  pack.kernel.params = {
      source,
      {kernel::Param::Role::kOutput, c.problem.type, packed_bytes / ByteWidth(c.problem.type)}};
  if (const auto& prologue = left ? c.a_prologue : c.b_prologue) {
    for (int other : prologue->others) {
      int param = product.kernel.stages[0].nodes[static_cast<size_t>(other)].param;
      pack.kernel.params.push_back(product.kernel.params[static_cast<size_t>(param)]);
    }
  }
  // What the prologue is made of.
  if (c.a_prologue || c.b_prologue) {
    pack.kernel.stages = {product.kernel.stages[0]};
    pack.kernel.variables = product.kernel.variables;
  }
  pack.kernel.bytes_read = source.elements * ByteWidth(source.type);
  pack.kernel.bytes_written = packed_bytes;
  pack.items = left ? product.gemm->pack_a_items : product.gemm->pack_b_items;
  // Packing moves about as many bytes as a thread moves in the time that it takes to wake one.
  pack.max_tasks =
      std::clamp<int64_t>(packed_bytes / (256 << 10), 1, std::max<int64_t>(pack.items, 1));
  return pack;
}

}  // namespace kiln::compiler
