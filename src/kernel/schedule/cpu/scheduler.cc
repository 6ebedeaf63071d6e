#include "kernel/schedule/cpu/scheduler.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "base/strings.h"
#include "kernel/build.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/scan.h"
#include "kernel/schedule/cpu/scatter.h"
#include "kernel/schedule/cpu/sort.h"

namespace kiln::kernel {
namespace {

// Smaller gemms, in operations on elements of vectors, end before another thread is woken.
constexpr int64_t kMinFlopsPerTask = 1 << 19;

// The kernel as a gemm by a schedule of its own; nothing where it is none.
Result<std::optional<CpuGemm>> ScheduleGemm(const Kernel& kernel, const target::Cpu& cpu,
                                            const IsConstant& is_constant) {
  auto gemm = AsGemm(kernel, cpu, is_constant);
  if (!gemm) return std::optional<CpuGemm>();
  const GemmProblem& problem = gemm->contraction.problem;
  KILN_ASSIGN_OR_RETURN(GemmSchedule schedule, ChooseGemmSchedule(cpu, problem));
  const int64_t flops = 2 * problem.BatchSize() * problem.m * problem.n * schedule.Steps(problem);
  CpuGemm scheduled;
  scheduled.max_tasks = std::clamp<int64_t>(flops / kMinFlopsPerTask, 1, schedule.items);
  scheduled.contraction = std::make_shared<const Contraction>(std::move(gemm->contraction));
  scheduled.schedule = std::make_shared<const GemmSchedule>(std::move(schedule));
  return std::optional(std::move(scheduled));
}

// Packed elements take the place of the left factor's parameter, which other loads may want, too:
// then, if packing is wanted, the factor gets a parameter of its own.
Status PackSharedFactor(const target::Cpu& cpu, const IsConstant& is_constant, Kernel& kernel,
                        CpuGemm& gemm) {
  GemmProblem problem = gemm.contraction->problem;
  if (problem.may_pack_a) return OkStatus();
  problem.may_pack_a = true;
  KILN_ASSIGN_OR_RETURN(const GemmSchedule wanted, ChooseGemmSchedule(cpu, problem));
  if (!wanted.pack_a) return OkStatus();
  Kernel apart = kernel;
  Node& load = apart.stages.front().nodes[gemm.contraction->a_load];
  const ParamId shared = load.param;
  load.param = apart.params.next();
  Param own = apart.params[shared];
  own.same_as = shared;
  apart.params.push_back(own);
  KILN_ASSIGN_OR_RETURN(std::optional<CpuGemm> packing, ScheduleGemm(apart, cpu, is_constant));
  if (!packing || !packing->schedule->pack_a) return OkStatus();
  kernel = std::move(apart);
  gemm = *std::move(packing);
  return OkStatus();
}

// The weight of an item of a bundle: the imbalance of the threads' shares.
constexpr double kItemMicroseconds = 0.02;

// Columns are taken in strips: with fewer columns than this in a strip the kernels are better
// apart.
constexpr int64_t kMinColumns = 64;

// Transformed tiles are in the last cache, and filters in memory.
constexpr double kTileBytesPerCycle = 8, kFilterBytesPerCycle = 4;

// Ops on an element, where they are not on vectors, times how often the gemm reads it.
constexpr int64_t kMaxWork = 4;

// The arrays of the smallest epilogue that is faster behind its gemm: RMSProp reads and writes two.
constexpr int64_t kCrowd = 4;

// How often the gemm loads each element of an operand, computed by so many ops, from where it is
// not packed, and whether it does so in vectors.
struct Reads {
  int64_t times = int64_t{1} << 40;
  bool vectors = false;
};
Reads ReadsOf(const ir::Instruction& dot, int operand, int64_t ops, const target::Cpu& cpu) {
  auto kernel = BuildKernel(GroupOf(dot), "reads");
  if (!kernel.ok()) return {};
  auto c = AsContraction(*kernel, cpu);
  if (!c || c->a_param == c->b_param) return {};
  const bool is_a = c->a_param == ParamId(operand);
  if (!is_a) c->problem.b_ops = ops;
  auto schedule = ChooseGemmSchedule(cpu, c->problem);
  if (!schedule.ok()) return {};
  if (schedule->kind == GemmKind::kInner && is_a) {
    return {CeilDiv(c->problem.n, schedule->nr), true};
  }
  if (is_a) return {schedule->pack_a ? 1 : schedule->n_panels, schedule->by_columns};
  switch (schedule->b) {
    case GemmB::kInPlace:
      return {schedule->m_tiles, !schedule->by_columns};
    case GemmB::kPackPanel:
      return {schedule->m_blocks, true};
    case GemmB::kPrepacked:
      return {1, true};
  }
  return {};
}

}  // namespace

Result<ScheduledKernel> CpuScheduler::Schedule(Kernel kernel, const IsConstant& is_constant) const {
  ScheduledKernel scheduled{std::move(kernel), {}};
  const Kernel& k = scheduled.kernel;
  switch (k.kind) {
    case Kernel::Kind::kNest: {
      KILN_ASSIGN_OR_RETURN(std::optional<CpuGemm> gemm, ScheduleGemm(k, cpu_, is_constant));
      if (gemm) {
        KILN_RETURN_IF_ERROR(PackSharedFactor(cpu_, is_constant, scheduled.kernel, *gemm));
        scheduled.schedule = *std::move(gemm);
      } else {
        scheduled.schedule = ScheduleNest(k, cpu_);
      }
      break;
    }
    case Kernel::Kind::kScatter:
      scheduled.schedule = ScheduleScatter(k, cpu_);
      break;
    case Kernel::Kind::kScan:
      scheduled.schedule = ScheduleScan(k, cpu_);
      break;
    case Kernel::Kind::kSort:
      scheduled.schedule = ScheduleSort(k, cpu_);
      break;
  }
  return scheduled;
}

std::optional<CpuChainSchedule> CpuScheduler::ScheduleChain(const Chain& chain,
                                                            const IsConstant& is_constant) const {
  return kernel::ScheduleChain(chain, cpu_, is_constant);
}

std::optional<double> CpuScheduler::PartMicroseconds(const ScheduledKernel& k) const {
  const auto* nest = std::get_if<CpuNestSchedule>(&k.schedule);
  if (!nest || k.kernel.kind != Kernel::Kind::kNest) return std::nullopt;
  if (nest->split > 0 || nest->scratch_bytes > 0 || nest->items == 0) return std::nullopt;
  return nest->microseconds;
}

// It is a gain where several threads can take part.
bool CpuScheduler::BundlePays(double microseconds) const {
  return cpu_.TasksWorth(microseconds) >= 2;
}

// Gives the threads their shares.
KernelSchedule CpuScheduler::ScheduleBundle(
    const std::vector<KernelPart>& parts,
    const std::vector<const ScheduledKernel*>& kernels) const {
  double microseconds = 0;
  CpuBundle bundle;
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto& nest = std::get<CpuNestSchedule>(kernels[p]->schedule);
    double per_item = nest.microseconds / static_cast<double>(nest.items);
    int64_t weight = std::max<int64_t>(std::llround(per_item / kItemMicroseconds), 1);
    bundle.parts.push_back({parts[p], bundle.items, weight});
    bundle.items += nest.items * weight;
    microseconds += nest.microseconds;
  }
  bundle.max_tasks = std::min(cpu_.TasksWorth(microseconds), bundle.items);
  return bundle;
}

bool CpuScheduler::ReadsThrough(const ir::Instruction& dot, int operand, int64_t ops,
                                bool heavy) const {
  const Reads reads = ReadsOf(dot, operand, heavy ? ops + kHeavyOps : ops, cpu_);
  const int64_t most = reads.vectors ? kMaxVectorWork : kMaxWork;
  return reads.times <= 1 || (!heavy && ops * reads.times <= most);
}

bool CpuScheduler::SpoilsGemm(const Kernel& fused, const ir::Instruction& dot) const {
  if (AsContraction(fused, cpu_)) return false;
  auto alone = BuildKernel(GroupOf(dot), "probe");
  return alone.ok() && AsContraction(*alone, cpu_);
}

// The rows of a tile are short pieces of each array, which nothing brings in time, and the ops on
// one vector are a chain: a kernel that walks through the arrays has more of both on their way.
// Measured with AVX2; wide vectors' tiles have pieces of two lines and more.
bool CpuScheduler::CrowdsGemm(int64_t arrays, int64_t bytes, int64_t heavy) const {
  return !HasWideVectors(cpu_) && heavy > 0 && arrays >= kCrowd && arrays * bytes > cpu_.l2_bytes;
}

bool CpuScheduler::KeepsNarrow(ElementType lhs, ElementType rhs, int64_t side_by_side) const {
  const ElementType sum = IsInteger(lhs) ? ElementType::kS32 : ElementType::kF32;
  const GemmUnit unit = UnitFor(cpu_, sum, lhs, rhs);
  // Words of windows are read where they are.
  const bool widens = unit == GemmUnit::kS16Pair && BitWidth(lhs) != 16;
  return unit != GemmUnit::kElement && !widens && side_by_side % GroupOf(unit) == 0;
}

// Of a tile, 4 places, 36 multiplications for each pair of features become 16; what is transformed
// and the products are stored and read, 16 elements for each feature. The filters grow from 9
// elements for each pair to 16, which are read from memory once.
bool CpuScheduler::TransformsTiles(int64_t tiles, int64_t places, int64_t inputs,
                                   int64_t outputs) const {
  if (cpu_.allow_bf16 && UnitFor(cpu_, ElementType::kF32, ElementType::kF32, ElementType::kF32) !=
                             GemmUnit::kElement) {
    return false;
  }
  const double pairs = static_cast<double>(inputs) * static_cast<double>(outputs);
  const double per_cycle = (cpu_.has_fma ? 2.0 : 1.0) * cpu_.vector_bytes / 4;
  const double of_places = 9 * static_cast<double>(places),
               of_tiles = 16 * static_cast<double>(tiles);
  const double saved = (of_places - of_tiles) * pairs / per_cycle;
  const double moved =
      2 * of_tiles * 4 * static_cast<double>(inputs + outputs) / kTileBytesPerCycle;
  const double filters = 7 * 4 * pairs / kFilterBytesPerCycle;
  return saved - moved > filters;
}

bool CpuScheduler::KeepsColumns(int64_t columns, int64_t column_bytes) const {
  return columns * column_bytes <= cpu_.l2_bytes || kMinColumns * column_bytes <= cpu_.l2_bytes / 2;
}

}  // namespace kiln::kernel
