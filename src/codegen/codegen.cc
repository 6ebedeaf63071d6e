#include "codegen/codegen.h"

#include <algorithm>
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
            return EmitGemmKernel(function, k, s, cpu, effort.own_gemm[id]);
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

// What the code that gemms share costs, in the unit of Effort::costs.
constexpr int64_t kSharedGemmCost = 140;

// The heaviest kernels first, each to the part that has least; or to the one that has the code that
// a gemm shares, unless another copy of it is the lesser evil.
std::vector<Part> Deal(const LoweredProgram& lowered,
                       const IdVector<program::KernelId, int64_t>& costs, size_t count) {
  std::vector<Part> parts(count);
  std::vector<int64_t> load(count, 0);
  parts[0].entry = true;
  load[0] = 20;
  std::vector<program::KernelId> order = Functions(lowered);
  std::stable_sort(order.begin(), order.end(),
                   [&](program::KernelId a, program::KernelId b) { return costs[a] > costs[b]; });
  std::unordered_map<std::string, size_t> part_of_shared;
  for (program::KernelId k : order) {
    auto part = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    const auto* gemm = std::get_if<kernel::CpuGemm>(&lowered.kernels[k].schedule);
    if (count > 1 && gemm && gemm->role == kernel::CpuGemm::Role::kGemm) {
      const std::string name = SharedGemmName(gemm->contraction->problem, *gemm->schedule);
      auto known = part_of_shared.find(name);
      if (known != part_of_shared.end() && load[known->second] <= load[part] + kSharedGemmCost) {
        part = known->second;
      } else {
        part_of_shared[name] = part;
        load[part] += kSharedGemmCost;
      }
    }
    parts[part].kernels.push_back(k);
    load[part] += costs[k];
  }
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
  size_t count = options.dump ? 1 : std::min(kernels, rounds * workers);
  Effort effort = PlanEffort(lowered, options.optimization, false);
  std::vector<Part> parts = Deal(lowered, effort.costs, count);
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
