#include "compiler/schedule_kernel.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/scan.h"
#include "kernel/schedule/cpu/scatter.h"
#include "kernel/schedule/cpu/sort.h"
#include "kernel/schedule/gpu/nest.h"

namespace kiln::compiler {
namespace {

using kernel::ScheduledKernel;

// Products below this many operations are done sooner than another thread is woken.
constexpr int64_t kMinFlopsPerTask = 1 << 19;

// Turns the kernel into a matrix product by a schedule of its own; false where it is none.
Result<bool> ScheduleProduct(ScheduledKernel& scheduled, const target::Cpu& cpu,
                             const std::function<bool(int)>& is_constant) {
  auto product = kernel::AsProduct(scheduled.kernel, cpu, is_constant);
  if (!product) return false;
  const kernel::GemmProblem& problem = product->contraction.problem;
  KILN_ASSIGN_OR_RETURN(kernel::GemmSchedule gemm, kernel::ChooseGemmSchedule(cpu, problem));
  kernel::RespectPacking(cpu, *product, gemm);
  int64_t flops = 2 * problem.BatchSize() * problem.m * problem.n * problem.TotalK();
  scheduled.form = ScheduledKernel::Form::kGemm;
  scheduled.items = gemm.items;
  scheduled.max_tasks = std::clamp<int64_t>(flops / kMinFlopsPerTask, 1, gemm.items);
  scheduled.contraction =
      std::make_shared<const kernel::Contraction>(std::move(product->contraction));
  scheduled.gemm = std::make_shared<const kernel::GemmSchedule>(std::move(gemm));
  return true;
}

}  // namespace

Result<ScheduledKernel> ScheduleKernel(kernel::Kernel kernel, const target::Target& target,
                                       const std::function<bool(int param)>& is_constant) {
  ScheduledKernel scheduled;
  scheduled.kernel = std::move(kernel);
  switch (target.kind) {
    case target::Kind::kCpu: {
      if (scheduled.kernel.kind == kernel::Kernel::Kind::kSort) {
        auto sort = kernel::ScheduleSort(scheduled.kernel, target.cpu);
        scheduled.items = sort.items;
        scheduled.max_tasks = sort.max_tasks;
        scheduled.sort = std::make_shared<const kernel::CpuSortSchedule>(std::move(sort));
        return scheduled;
      }
      KILN_ASSIGN_OR_RETURN(bool product, ScheduleProduct(scheduled, target.cpu, is_constant));
      if (product) return scheduled;
      switch (scheduled.kernel.kind) {
        case kernel::Kernel::Kind::kNest:
          scheduled.cpu = kernel::ScheduleNest(scheduled.kernel, target.cpu);
          break;
        case kernel::Kernel::Kind::kScatter:
          scheduled.cpu = kernel::ScheduleScatter(scheduled.kernel, target.cpu);
          break;
        case kernel::Kernel::Kind::kScan:
          scheduled.cpu = kernel::ScheduleScan(scheduled.kernel, target.cpu);
          break;
        case kernel::Kernel::Kind::kSort:
          return Internal("kernel ", scheduled.kernel.name, ": a sort has a schedule of its own");
      }
      scheduled.items = scheduled.cpu.items;
      scheduled.max_tasks = scheduled.cpu.max_tasks;
      scheduled.finish = scheduled.cpu.split > 0;
      return scheduled;
    }
    case target::Kind::kGpu:
      scheduled.gpu = kernel::ScheduleGpu(scheduled.kernel, target.gpu);
      return scheduled;
    case target::Kind::kReference:
      break;
  }
  return Internal("the reference device runs no kernels");
}

int64_t ScratchBytes(const ScheduledKernel& kernel, const target::Target& target) {
  if (target.kind != target::Kind::kCpu) return kernel.gpu.scratch_bytes;
  if (kernel.sort) return kernel.sort->scratch_bytes;
  return kernel.gemm ? kernel.gemm->scratch_bytes : kernel.cpu.scratch_bytes;
}

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
