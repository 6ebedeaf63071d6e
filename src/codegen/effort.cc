#include "codegen/effort.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/cpu/gemm.h"
#include "codegen/cpu/gemm_kernel.h"
#include "codegen/kernel_uses.h"
#include "kernel/contraction.h"
#include "program/steps.h"

namespace kiln::codegen {
namespace {

// Of a function, however small, and of the lines of an elementary function in it: a line is the
// unit of costs, and takes some 25 microseconds on a machine of 2023.
constexpr int64_t kFunctionCost = 20, kElementaryCost = 20, kGemmCost = 80;
// Of a pipeline of rows: the first rows, the last ones, and those between.
constexpr int64_t kPipelinedCopies = 3;
// Programs that take less are optimised throughout.
constexpr int64_t kLargeCost = 12'000;
constexpr int64_t kQuickGain = 3;
// A kernel that takes more alone has calls of elementary functions on GPUs, too.
constexpr int64_t kHugeCost = 12'000;
// A kernel that makes so many values takes microseconds less when it is optimised, and would have
// to be run some hundred times before that makes good the time that LLVM takes.
constexpr int64_t kManyValues = 1 << 20;
// The part of a program's time that all short kernels together take, whether it runs on one thread
// or on many, and the part that quick ones take of one that is not large: they take twice to three
// times as long.
constexpr double kShortShare = 1.0 / 128, kQuickShare = 1.0 / 512;
constexpr int64_t kManyThreads = 32;
constexpr int64_t kShortGain = 2;
// Quick kernels of less cost are not worth a module of their own.
constexpr int64_t kLeastQuickCost = 24;

// Of a CPU's gemm from the stage on that follows it.
bool IsElementwise(const kernel::ScheduledKernel& k) {
  kernel::StageId first(0);
  if (const auto* gemm = std::get_if<kernel::CpuGemm>(&k.schedule)) {
    if (gemm->role != kernel::CpuGemm::Role::kGemm) return false;
    first = kernel::StageId(1);
  } else {
    const auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
    if (!nest || nest->split > 0 || k.kernel.kind != kernel::Kernel::Kind::kNest) return false;
  }
  // A gemm that nothing follows has no code of its own.
  if (k.kernel.stages.next() <= first) return false;
  return std::ranges::all_of(k.kernel.stages.ids(first), [&](kernel::StageId s) {
    return k.kernel.stages[s].reductions.empty();
  });
}

int64_t GemmCostOf(const kernel::ScheduledKernel& k) { return IsLoneGemm(k) ? kGemmCost : 0; }

bool IsGpuNest(const kernel::ScheduledKernel& k) {
  return std::holds_alternative<kernel::GpuSchedule>(k.schedule) &&
         k.kernel.kind == kernel::Kernel::Kind::kNest;
}

// With those that are folded, or without.
int64_t ValuesOf(const kernel::Kernel& k, bool folds) {
  double points = 1;
  for (kernel::VariableId v : k.OuterVariables()) points *= double(k.variables[v].extent);
  double values = 0;
  for (const kernel::Stage& stage : k.stages) {
    if (!stage.reductions.empty() && !folds) continue;
    double inner = points;
    for (kernel::VariableId v : stage.variables) inner *= double(k.variables[v].extent);
    values += inner * double(stage.nodes.size());
  }
  return static_cast<int64_t>(std::min(values, 1e18));
}

// Roots are instructions.
bool IsFunction(Opcode opcode) {
  return IsTranscendental(opcode) && opcode != Opcode::kSqrt && opcode != Opcode::kRsqrt;
}

int64_t CostOf(const IdVector<kernel::NodeId, kernel::Node>& nodes, int64_t elementary) {
  int64_t cost = 0;
  for (const kernel::Node& n : nodes) {
    const bool heavy = n.kind == kernel::Node::Kind::kOp && IsFunction(n.opcode);
    cost += heavy ? elementary : 1;
  }
  return cost;
}

int64_t CostOf(const kernel::ScheduledKernel& k, int64_t elementary) {
  int64_t cost = kFunctionCost;
  const auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
  for (kernel::StageId s : k.kernel.stages.ids()) {
    const kernel::Stage& stage = k.kernel.stages[s];
    int64_t once = CostOf(stage.nodes, elementary);
    for (const kernel::Reduction& r : stage.reductions) {
      once += CostOf(r.combiner.nodes, elementary);
    }
    for (const kernel::Update& u : stage.updates) once += CostOf(u.combiner.nodes, elementary);
    if (stage.sort) {
      once += CostOf(stage.sort->comparator.nodes, elementary);
      if (stage.sort->key) once += CostOf(stage.sort->key->value.nodes, elementary);
    }
    int64_t copies = nest && s < nest->stages.next() ? nest->stages[s].unroll + 1 : 2;
    cost += once * copies;
  }
  return cost;
}

// Of its code, in a pipeline of rows.
int64_t CopiesOf(const kernel::ScheduledKernel& k) {
  const auto* nest = std::get_if<kernel::CpuNestSchedule>(&k.schedule);
  return nest && nest->pipelined ? kPipelinedCopies : 1;
}

bool IsCpuNest(const kernel::ScheduledKernel& k) {
  return std::holds_alternative<kernel::CpuNestSchedule>(k.schedule) &&
         k.kernel.kind == kernel::Kernel::Kind::kNest;
}

// The shares of a CPU's program's time that its kernels take. All of it counts for those of which
// it is not known, or which are run by a loop or a branch.
class Shares {
 public:
  explicit Shares(const LoweredProgram& lowered)
      : lowered_(lowered), times_(lowered.kernels.size()) {
    for (const program::Step& step : lowered.program.steps) {
      if (const auto* launch = std::get_if<program::Launch>(&step.what)) Add(*launch, true);
      program::ForEachList(step, [&](const program::Steps& inner, bool) {
        program::ForEach<program::Launch>(
            inner, [&](const program::Launch& launch) { Add(launch, false); });
      });
    }
  }

  double Of(program::KernelId k) const {
    const Time& time = times_[k];
    if (!time.known || time.one_thread <= 0) return 1;
    return std::max(time.one_thread / all_.one_thread, time.many_threads / all_.many_threads);
  }

 private:
  struct Time {
    double one_thread = 0, many_threads = 0;
    bool known = true;
  };

  void Add(const program::Launch& launch, bool known) {
    const kernel::KernelSchedule& schedule = lowered_.KernelOf(launch).schedule;
    const std::optional<kernel::CpuItems> items = kernel::ItemsOf(schedule);
    const int64_t tasks = items ? std::clamp<int64_t>(items->max_tasks, 1, kManyThreads) : 1;
    Add(launch.kernel, tasks, known);
    for (const kernel::KernelPart& part : kernel::PartsOf(schedule)) {
      Add(part.kernel, tasks, known);
    }
  }
  void Add(program::KernelId k, int64_t tasks, bool known) {
    const std::optional<kernel::CpuItems> items = kernel::ItemsOf(lowered_.kernels[k].schedule);
    times_[k].known &= known && items;
    if (!known || !items) return;
    for (Time* time : {&times_[k], &all_}) {
      time->one_thread += items->microseconds;
      time->many_threads += items->microseconds / static_cast<double>(tasks);
    }
  }

  const LoweredProgram& lowered_;
  IdVector<program::KernelId, Time> times_;
  Time all_;
};

// The kernels, of those that may be meant, which together take at most a part of the program's
// time, beginning with the least.
std::vector<program::KernelId> OfLittleTime(
    const LoweredProgram& lowered, double part,
    const std::function<bool(const kernel::ScheduledKernel&)>& may_be) {
  const Shares shares(lowered);
  std::vector<std::pair<double, program::KernelId>> order;
  for (program::KernelId k : lowered.kernels.ids()) {
    const double share = shares.Of(k);
    if (share < part && may_be(lowered.kernels[k])) order.emplace_back(share, k);
  }
  std::ranges::sort(order);
  std::vector<program::KernelId> kernels;
  double sum = 0;
  for (auto [share, k] : order) {
    sum += share;
    if (sum > part) break;
    kernels.push_back(k);
  }
  return kernels;
}

// Null if the kernel is no gemm.
const kernel::CpuGemm* GemmOf(const kernel::ScheduledKernel& k) {
  const auto* gemm = std::get_if<kernel::CpuGemm>(&k.schedule);
  return gemm && gemm->role == kernel::CpuGemm::Role::kGemm ? gemm : nullptr;
}

IdVector<program::KernelId, bool> OwnGemms(const LoweredProgram& lowered) {
  IdVector<program::KernelId, bool> own(lowered.kernels.size());
  auto gemm_of = [&](program::KernelId k) { return GemmOf(lowered.kernels[k]); };
  bool any = false;
  for (program::KernelId k : own.ids()) {
    const kernel::CpuGemm* gemm = gemm_of(k);
    own[k] = gemm && GainsByOwnGemm(lowered.kernels[k].kernel, *gemm);
    any |= own[k];
  }
  if (!any) return own;
  auto name_of = [](const kernel::CpuGemm& gemm) {
    return SharedGemmFamily(gemm.contraction->problem, *gemm.schedule, true, false);
  };
  std::unordered_map<std::string, int> kernels;  // by their shared code
  for (program::KernelId k : own.ids()) {
    if (const kernel::CpuGemm* gemm = gemm_of(k)) ++kernels[name_of(*gemm)];
  }
  for (program::KernelId k : own.ids()) own[k] = own[k] && kernels[name_of(*gemm_of(k))] == 1;
  return own;
}

// Gemms of one family. One alone, or several of one size, have code of that size.
void PlanSizes(const LoweredProgram& lowered, Effort& effort) {
  struct Family {
    std::vector<program::KernelId> kernels;
    std::unordered_set<std::string> sizes;
    bool has_lone = false;
  };
  std::unordered_map<std::string, Family> families;
  for (program::KernelId k : lowered.kernels.ids()) {
    const kernel::CpuGemm* gemm = GemmOf(lowered.kernels[k]);
    if (!gemm || effort.own_gemm[k]) continue;
    const kernel::Contraction& c = *gemm->contraction;
    if (c.a_prologue && !gemm->schedule->pack_a) continue;
    if (c.b_prologue && gemm->schedule->b != kernel::GemmB::kPrepacked) continue;
    const bool is_lone = IsLoneGemm(lowered.kernels[k]);
    const auto name = [&](bool of_any_size) {
      return SharedGemmFamily(c.problem, *gemm->schedule, !is_lone, of_any_size);
    };
    const std::string name_of_any = name(true);
    if (name_of_any.empty()) continue;
    Family& family = families[name_of_any];
    family.kernels.push_back(k);
    family.sizes.insert(name(false));
    family.has_lone |= is_lone;
  }
  for (const auto& [name, family] : families) {
    if (family.kernels.size() < 2 || (family.sizes.size() < 2 && !family.has_lone)) continue;
    for (program::KernelId k : family.kernels) {
      effort.of_any_size[k] = true;
      if (IsLoneGemm(lowered.kernels[k])) effort.costs[k] = kFunctionCost;
    }
  }
}

void PlanShortened(const LoweredProgram& lowered, Effort& effort) {
  for (program::KernelId k : OfLittleTime(lowered, kShortShare, IsCpuNest)) {
    effort.shortened[k] = true;
    effort.costs[k] /= kShortGain * CopiesOf(lowered.kernels[k]);  // it is no pipeline any more
  }
}

// Of a program that is not large.
void PlanQuick(const LoweredProgram& lowered, Effort& effort) {
  const std::vector<program::KernelId> quick =
      OfLittleTime(lowered, kQuickShare,
                   [](const kernel::ScheduledKernel& k) { return IsCpuNest(k) || IsLoneGemm(k); });
  int64_t cost = 0;
  for (program::KernelId k : quick) cost += effort.costs[k];
  if (cost < kLeastQuickCost) return;
  for (program::KernelId k : quick) {
    effort.quick[k] = true;
    effort.costs[k] /= kQuickGain;
  }
}

// Of a large program.
void PlanQuickOfLarge(const LoweredProgram& lowered, bool all, bool emulates_gpu, Effort& effort) {
  const auto uses = KernelUses(lowered);
  for (program::KernelId k : effort.quick.ids()) {
    const kernel::ScheduledKernel& kernel = lowered.kernels[k];
    bool quick = !uses[k].looped && (emulates_gpu ? IsGpuNest(kernel) : IsElementwise(kernel)) &&
                 (all || ValuesOf(kernel.kernel, emulates_gpu) < kManyValues);
    effort.quick[k] = quick;
    const int64_t gemm = effort.of_any_size[k] ? 0 : GemmCostOf(kernel);
    effort.costs[k] = (CostOf(kernel, 1) + gemm) / (quick ? kQuickGain : 1);
  }
}

}  // namespace

bool IsLoneGemm(const kernel::ScheduledKernel& k) {
  const kernel::CpuGemm* gemm = GemmOf(k);
  return gemm && gemm->contraction->c_param.valid();
}

Effort PlanEffort(const LoweredProgram& lowered, Optimization optimization, bool emulates_gpu) {
  Effort effort;
  int64_t total = 0;
  for (const kernel::ScheduledKernel& k : lowered.kernels) {
    const int64_t cost = CostOf(k, kElementaryCost);
    effort.costs.push_back(cost * CopiesOf(k) + GemmCostOf(k));
    // Many lone gemms do not make a program large: their code is optimised in any case.
    total += cost;
    effort.huge |= effort.costs.back() > kHugeCost && optimization != Optimization::kFull;
    if (!emulates_gpu) continue;
    for (const kernel::KernelPart& part : kernel::PartsOf(k.schedule)) {
      total += CostOf(lowered.kernels[part.kernel], kElementaryCost);
    }
  }
  bool quick_anyway = optimization == Optimization::kQuick;
  effort.large = quick_anyway || (total > kLargeCost && optimization == Optimization::kAuto);
  effort.quick.assign(lowered.kernels.size(), false);
  effort.shortened.assign(lowered.kernels.size(), false);
  effort.of_any_size.assign(lowered.kernels.size(), false);
  if (effort.large) {
    effort.own_gemm.assign(lowered.kernels.size(), false);
  } else {
    effort.own_gemm = OwnGemms(lowered);
  }
  PlanSizes(lowered, effort);
  if (optimization == Optimization::kFull) return effort;
  PlanShortened(lowered, effort);
  if (effort.large) {
    PlanQuickOfLarge(lowered, quick_anyway, emulates_gpu, effort);
  } else {
    PlanQuick(lowered, effort);
  }
  // On a GPU the kernels of a bundle are of one module.
  for (program::KernelId k : effort.quick.ids()) {
    const kernel::KernelSchedule& schedule = lowered.kernels[k].schedule;
    if (!std::holds_alternative<kernel::CpuBundle>(schedule) &&
        !std::holds_alternative<kernel::GpuBundle>(schedule)) {
      continue;
    }
    const std::vector<kernel::KernelPart> parts = kernel::PartsOf(schedule);
    effort.quick[k] = std::ranges::all_of(
        parts, [&](const kernel::KernelPart& part) { return effort.quick[part.kernel]; });
  }
  return effort;
}

}  // namespace kiln::codegen
