#include "codegen/codegen.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <unordered_map>

#include "backend/guard.h"
#include "base/overloaded.h"
#include "base/strings.h"
#include "codegen/cpu/bundle.h"
#include "codegen/cpu/chain.h"
#include "codegen/cpu/entry.h"
#include "codegen/cpu/gemm.h"
#include "codegen/cpu/gemm_kernel.h"
#include "codegen/cpu/nest.h"
#include "codegen/cpu/scan.h"
#include "codegen/cpu/scatter.h"
#include "codegen/cpu/sort.h"
#include "codegen/effort.h"
#include "codegen/elemental.h"
#include "codegen/kernel_uses.h"
#include "codegen/llvm_session.h"
#include "codegen/parallel.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/shorten.h"

namespace kiln::codegen {
namespace {

Status EmitKernel(LlvmSession& session, const LoweredProgram& lowered, program::KernelId id,
                  const Effort& effort, const target::Cpu& cpu) {
  const kernel::ScheduledKernel& kernel = lowered.kernels[id];
  llvm::Function* function =
      session.AddFunction(session.KernelType(), KernelSymbol(lowered, id), true);
  if (effort.quick[id]) MakeQuick(function);
  const kernel::Kernel& k = kernel.kernel;
  auto is_none = [&] { return Internal("kernel ", k.name, " has no schedule for a CPU"); };
  return std::visit(
      Overloaded{
          [&](const kernel::CpuNestSchedule& s) {
            switch (k.kind) {
              case kernel::Kernel::Kind::kNest:
                return EmitNest(function, k, effort.shortened[id] ? Shortened(k, s, cpu) : s, cpu);
              case kernel::Kernel::Kind::kScatter:
                return EmitScatter(function, k, s, cpu);
              case kernel::Kernel::Kind::kScan:
                return EmitScan(function, k, s, cpu);
              case kernel::Kernel::Kind::kSort:
                break;
            }
            return is_none();
          },
          [&](const kernel::CpuSortSchedule& s) { return EmitSort(session, function, k, s, cpu); },
          [&](const kernel::CpuGemm& s) {
            return EmitGemmKernel(function, k, s, cpu, effort.own_gemm[id], effort.of_any_size[id]);
          },
          [&](const kernel::CpuBundle& s) {
            EmitBundle(session, function, lowered, s);
            return OkStatus();
          },
          [&](const kernel::CpuChain& s) {
            EmitChain(session, function, lowered, s);
            return OkStatus();
          },
          [&](const kernel::GpuSchedule&) { return is_none(); },
          [&](const kernel::GpuBundle&) { return is_none(); },
      },
      kernel.schedule);
}

// One LLVM module's share of a program.
struct Part {
  std::vector<program::KernelId> kernels;
  bool entry = false;
  // The result.
  Status status;
  std::vector<std::string> objects;
  std::string text;
};

// The part's objects, and its text where that is wanted.
Status Emit(const LoweredProgram& lowered, const Effort& effort, const target::Cpu& cpu,
            const Options& options, std::string_view name, Part& part) {
  std::vector<std::string> objects;
  std::string text;
  TraceSpan emission(options.trace, Cat("emit ", name), "codegen");
  emission.AddArg("kernels", std::ssize(part.kernels));
  int64_t cost = 0;
  for (program::KernelId k : part.kernels) cost += effort.costs[k];
  emission.AddArg("cost", cost);
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<LlvmSession> session,
                        LlvmSession::ForCpu(Cat(name, ".", lowered.program.id), cpu));
  if (effort.large) ShareFunctions(session->module());
  for (program::KernelId k : part.kernels) {
    KILN_RETURN_IF_ERROR(options.interrupt.Check());
    KILN_RETURN_IF_ERROR(EmitKernel(*session, lowered, k, effort, cpu));
  }
  if (part.entry) KILN_RETURN_IF_ERROR(EmitEntries(*session, lowered, cpu));
  if (options.dump) text = session->Text();
  KILN_RETURN_IF_ERROR(session->Verify());
  KILN_ASSIGN_OR_RETURN(bool large, session->MakeLargeQuick());
  KILN_RETURN_IF_ERROR(options.interrupt.Check());
  emission.End();
  TraceSpan generation(options.trace, Cat("LLVM ", name), "codegen");
  if (effort.large || large || session->HasManyQuick()) {
    KILN_ASSIGN_OR_RETURN(std::string object, session->EmitQuick());
    objects.push_back(std::move(object));
  }
  KILN_ASSIGN_OR_RETURN(std::string object, session->Emit());
  objects.push_back(std::move(object));
  int64_t bytes = 0;
  for (const std::string& made : objects) bytes += std::ssize(made);
  generation.AddArg("object_bytes", bytes);
  part.objects = std::move(objects);
  part.text = std::move(text);
  return OkStatus();
}

// The kernels that are functions, not only pieces of loops.
std::vector<program::KernelId> Functions(const LoweredProgram& lowered) {
  const auto uses = KernelUses(lowered);
  std::vector<program::KernelId> functions;
  for (program::KernelId k : uses.ids()) {
    if (uses[k].called || !uses[k].inlined) functions.push_back(k);
  }
  return functions;
}

// Null if the kernel is no gemm.
const kernel::CpuGemm* GemmOf(const LoweredProgram& lowered, program::KernelId k) {
  const auto* gemm = std::get_if<kernel::CpuGemm>(&lowered.kernels[k].schedule);
  return gemm && gemm->role == kernel::CpuGemm::Role::kGemm ? gemm : nullptr;
}

// What the code that gemms share costs, the entry, and another module, in the unit of
// Effort::costs.
constexpr int64_t kSharedGemmCost = 110, kEntryCost = 20, kModuleCost = 45;

// The share of the work that each module is to have. Costs are estimates: where there is much to
// do, each of several threads has a small module besides, taken by those that finish first.
std::vector<double> WeightsOf(size_t workers, size_t rounds, size_t kernels, int64_t cost) {
  constexpr double kSmall = 0.25;
  std::vector<double> weights(std::min(workers * rounds, kernels), 1);
  const double small = kSmall / (1 + kSmall) * static_cast<double>(cost) / double(workers);
  if (workers > 1 && rounds == 1 && small >= 5 * kModuleCost) {
    weights.insert(weights.end(), workers, kSmall);
  }
  return weights;
}

// The heaviest kernels first, each to the part that has least of its share then; or to the one that
// has the code that a gemm shares, unless another copy of it is the lesser evil. Small parts have
// no gemms, which would be such copies. What is compiled quickly goes with the entry, which is,
// too, if it is little.
std::vector<Part> Deal(const LoweredProgram& lowered, const Effort& effort,
                       const std::vector<double>& weights) {
  std::vector<Part> parts(weights.size());
  std::vector<int64_t> load(parts.size(), 0);
  const auto filled = [&](size_t part, int64_t more) {
    return static_cast<double>(load[part] + more) / weights[part];
  };
  const auto add = [&](size_t part, program::KernelId k) {
    parts[part].kernels.push_back(k);
    load[part] += effort.costs[k];
  };
  // The entry is compiled quickly, as a module besides.
  parts[0].entry = true;
  load[0] = kEntryCost + kModuleCost;
  std::vector<program::KernelId> order = Functions(lowered);
  std::ranges::stable_sort(order, std::greater(),
                           [&](program::KernelId k) { return effort.costs[k]; });
  if (!effort.large) {
    const auto quick = std::ranges::stable_partition(
        order, [&](program::KernelId k) { return !effort.quick[k] || GemmOf(lowered, k); });
    for (program::KernelId k : quick) add(0, k);
    order.erase(quick.begin(), quick.end());
  }
  std::unordered_map<std::string, size_t> part_of_shared;
  for (program::KernelId k : order) {
    const int64_t cost = effort.costs[k];
    const kernel::CpuGemm* gemm = GemmOf(lowered, k);
    size_t part = 0;
    for (size_t p = 1; p < parts.size(); ++p) {
      if (gemm && weights[p] < 1) break;
      if (filled(p, cost) < filled(part, cost)) part = p;
    }
    const bool is_lone = IsLoneGemm(lowered.kernels[k]);
    if (gemm && effort.own_gemm[k]) {
      load[part] += kSharedGemmCost;
    } else if (gemm && parts.size() > 1 && (!is_lone || effort.of_any_size[k])) {
      // The cost of a gemm alone has its code.
      const int64_t shared = kSharedGemmCost;
      const std::string name = SharedGemmFamily(gemm->contraction->problem, *gemm->schedule,
                                                !is_lone, effort.of_any_size[k]);
      auto known = part_of_shared.find(name);
      if (known != part_of_shared.end() &&
          filled(known->second, cost) <= filled(part, cost + shared)) {
        part = known->second;
      } else {
        part_of_shared[name] = part;
        load[part] += shared;
      }
    }
    add(part, k);
  }
  std::erase_if(parts, [](const Part& part) { return part.kernels.empty() && !part.entry; });
  // Others may take their code (SharedGemmFamily).
  const auto has_blocks = [&](program::KernelId k) {
    const kernel::CpuGemm* gemm = GemmOf(lowered, k);
    return gemm && gemm->schedule->k_blocks > 1;
  };
  for (Part& part : parts) std::ranges::stable_partition(part.kernels, has_blocks);
  return parts;
}

}  // namespace

Result<std::vector<std::string>> GenerateCpu(const LoweredProgram& lowered, const target::Cpu& cpu,
                                             const Options& options) {
  const size_t workers = static_cast<size_t>(std::max(options.threads, 1));
  const size_t kernels = std::max<size_t>(lowered.kernels.size(), 1);
  // A dump is one module, readable by LLVM's tools.
  const size_t round = workers * kMostKernelsOfModule;
  const size_t rounds = (kernels + round - 1) / round;
  const Effort effort = PlanEffort(lowered, options.optimization, false);
  const int64_t cost = std::accumulate(effort.costs.begin(), effort.costs.end(), int64_t{0});
  std::vector<Part> parts =
      Deal(lowered, effort,
           options.dump ? std::vector<double>{1} : WeightsOf(workers, rounds, kernels, cost));
  InParallel(workers, parts.size(), [&](size_t i) {
    const std::string name = Cat(lowered.program.name, ".", i);
    parts[i].status = backend::RunLlvm(name, options.interrupt, [&] {
      return Emit(lowered, effort, cpu, options, name, parts[i]);
    });
  });
  std::vector<std::string> objects;
  for (Part& part : parts) {
    for (std::string& object : part.objects) objects.push_back(std::move(object));
  }
  if (options.dump) options.dump("ir-no-opt.ll", parts[0].text);
  for (const Part& part : parts) KILN_RETURN_IF_ERROR(part.status);
  return objects;
}

}  // namespace kiln::codegen
