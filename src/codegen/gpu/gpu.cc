// GPU programs to PTX, and to host objects for the emulator.

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "backend/guard.h"
#include "base/overloaded.h"
#include "base/strings.h"
#include "codegen/codegen.h"
#include "codegen/control_flow.h"
#include "codegen/effort.h"
#include "codegen/elemental.h"
#include "codegen/gpu/emulate.h"
#include "codegen/gpu/nest.h"
#include "codegen/gpu/primitives.h"
#include "codegen/kernel_uses.h"
#include "codegen/llvm_session.h"
#include "codegen/parallel.h"
#include "llvm/IR/Metadata.h"

namespace kiln::codegen {
namespace {

// "Kernel function parameters", PTX ISA: 4096 bytes, and 32764 since version 8.1. One more may be
// the scratch's.
constexpr size_t kMostOldParams = 4096 / 8, kMostParams = 32764 / 8;

// Marks a kernel's entry, and says how many threads a block of it has.
void MarkKernel(llvm::Function* f, int threads) {
  llvm::LLVMContext& context = f->getContext();
  auto* annotations = f->getParent()->getOrInsertNamedMetadata("nvvm.annotations");
  auto add = [&](const char* key, int value) {
    auto* number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
    annotations->addOperand(llvm::MDNode::get(
        context, {llvm::ValueAsMetadata::get(f), llvm::MDString::get(context, key),
                  llvm::ConstantAsMetadata::get(number)}));
  };
  add("kernel", 1);
  add("maxntidx", threads);
}

// The kernels that a program launches.
std::vector<program::KernelId> LaunchedKernels(const LoweredProgram& lowered) {
  const auto uses = KernelUses(lowered);
  std::vector<program::KernelId> kernels;
  for (program::KernelId k : uses.ids()) {
    if (uses[k].launched) kernels.push_back(k);
  }
  return kernels;
}

// One LLVM module's share of a program.
struct GpuModule {
  std::vector<program::KernelId> kernels;
  // The effort of effort.h applies to the emulator only: the driver could not make up for missing
  // optimisation of a GPU's code.
  bool quick = false;
  // The result.
  Status status;
  std::string code, text;
};

// The kernels, distributed over modules. A dump is one module, readable by the assembler.
std::vector<GpuModule> Deal(const std::vector<program::KernelId>& kernels, const Effort& effort,
                            const target::Target& target, const Options& options) {
  if (options.dump) return {{.kernels = kernels}};
  std::vector<GpuModule> modules;
  for (bool quick : {false, true}) {
    std::vector<program::KernelId> chosen;
    std::ranges::copy_if(kernels, std::back_inserter(chosen), [&](program::KernelId k) {
      return quick == (target.gpu.emulated && effort.quick[k]);
    });
    const size_t workers = static_cast<size_t>(std::max(options.threads, 1));
    const size_t most = kMostKernelsOfModule;
    const size_t count =
        std::max(std::min(workers, chosen.size()), (chosen.size() + most - 1) / most);
    for (size_t i = 0; i < count; ++i) {
      GpuModule module{.quick = quick};
      for (size_t k = i; k < chosen.size(); k += count) module.kernels.push_back(chosen[k]);
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

// Makes a module's code.
class GpuModuleEmitter {
 public:
  GpuModuleEmitter(const LoweredProgram& lowered, const target::Target& target,
                   const Options& options)
      : lowered_(lowered), target_(target), options_(options) {}

  // `shares`: elementary functions are shared by all kernels.
  Status Run(std::string_view name, bool shares, GpuModule& part) {
    const std::vector<program::KernelId>& kernels = part.kernels;
    TraceSpan emission(options_.trace, Cat("emit ", name), "codegen");
    emission.AddArg("kernels", std::ssize(kernels));
    if (target_.gpu.emulated) {
      KILN_ASSIGN_OR_RETURN(session_, LlvmSession::ForCpu(name, target_.cpu));
      math_.has_fma = target_.cpu.has_fma;
      math_.has_f16 = target_.cpu.has_f16;
    } else {
      target::Gpu gpu = target_.gpu;
      for (program::KernelId k : kernels)
        gpu.ptx_version = std::max(gpu.ptx_version, PtxVersionOf(k));
      KILN_ASSIGN_OR_RETURN(session_, LlvmSession::ForGpu(name, gpu));
    }
    if (shares) ShareFunctions(session_->module());
    for (program::KernelId k : kernels) KILN_RETURN_IF_ERROR(EmitKernel(k));
    std::string text;
    if (options_.dump) text = session_->Text();
    KILN_RETURN_IF_ERROR(session_->Verify());
    if (target_.gpu.emulated) {
      KILN_RETURN_IF_ERROR(
          LowerPrimitivesToEmulator(session_->module(), entries_, target_.gpu.sm, part.quick));
    } else {
      KILN_RETURN_IF_ERROR(LowerPrimitivesToNvptx(session_->module(), target_.gpu.sm));
    }
    KILN_RETURN_IF_ERROR(session_->Verify());
    KILN_ASSIGN_OR_RETURN(bool large, session_->MakeLargeQuick());
    KILN_RETURN_IF_ERROR(options_.interrupt.Check());
    emission.End();
    TraceSpan generation(options_.trace, Cat("LLVM ", name), "codegen");
    // The emulator loads a single object.
    KILN_ASSIGN_OR_RETURN(std::string code,
                          part.quick || large ? session_->EmitAllQuick() : session_->Emit());
    generation.AddArg("code_bytes", std::ssize(code));
    part.code = std::move(code);
    part.text = std::move(text);
    return OkStatus();
  }

 private:
  // Parameters of more than 4 KiB are known since PTX 8.1.
  int PtxVersionOf(program::KernelId id) const {
    const kernel::Kernel& k = lowered_.kernels[id].kernel;
    return k.params.size() >= kMostOldParams ? 81 : 0;
  }

  Status EmitKernel(program::KernelId id) {
    const kernel::ScheduledKernel& kernel = lowered_.kernels[id];
    if (kernel.kernel.params.size() >= kMostParams) {
      return Unimplemented("kernel ", kernel.kernel.name, " (", Join(kernel.kernel.op_names, ", "),
                           ") has ", kernel.kernel.params.size(),
                           " arrays; a GPU's have fewer than ", kMostParams);
    }
    const std::vector<program::Grid>& grids = lowered_.program.kernels[id].grids;
    return std::visit(
        Overloaded{
            [&](const kernel::GpuSchedule& s) { return EmitGrids(kernel.kernel, s, grids); },
            [&](const kernel::GpuBundle& s) { return EmitBundle(kernel.kernel, s, grids); },
            [&](const auto&) {
              return Internal("kernel ", kernel.kernel.name, " has no schedule for a GPU");
            },
        },
        kernel.schedule);
  }

  // The empty entry of a grid.
  Result<llvm::Function*> AddEntry(const kernel::Kernel& kernel,
                                   const kernel::GpuSchedule& schedule, size_t launch,
                                   const program::Grid& grid) {
    KILN_RETURN_IF_ERROR(options_.interrupt.Check());
    auto* f =
        llvm::Function::Create(GpuKernelType(session_->context(), kernel, schedule),
                               llvm::Function::ExternalLinkage, grid.symbol, session_->module());
    f->addFnAttr(llvm::Attribute::NoUnwind);
    MarkKernel(f, schedule.launches[launch].threads);
    entries_.push_back(f);
    return f;
  }

  Status EmitGrids(const kernel::Kernel& kernel, const kernel::GpuSchedule& schedule,
                   const std::vector<program::Grid>& grids) {
    for (size_t launch = 0; launch < schedule.launches.size(); ++launch) {
      KILN_ASSIGN_OR_RETURN(llvm::Function * f, AddEntry(kernel, schedule, launch, grids[launch]));
      KILN_RETURN_IF_ERROR(EmitGpuKernel(f, kernel, schedule, launch, math_, combiners_));
    }
    return OkStatus();
  }

  // Each part is a function that takes its share of the parameters.
  Status EmitBundle(const kernel::Kernel& of_all, const kernel::GpuBundle& bundle,
                    const std::vector<program::Grid>& grids) {
    KILN_ASSIGN_OR_RETURN(llvm::Function * f, AddEntry(of_all, bundle.together, 0, grids[0]));
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(f->getContext(), "entry", f));
    auto* done = llvm::BasicBlock::Create(f->getContext(), "done", f);
    std::vector<std::function<void()>> calls;
    for (const kernel::GpuBundle::Part& part : bundle.parts) {
      const kernel::Kernel& kernel = lowered_.kernels[part.kernel].kernel;
      auto* function = llvm::Function::Create(
          GpuKernelType(f->getContext(), kernel, part.schedule), llvm::Function::InternalLinkage,
          Cat(f->getName().str(), "_part_", calls.size()), f->getParent());
      function->setAttributes(f->getAttributes());
      KILN_RETURN_IF_ERROR(EmitGpuKernel(function, kernel, part.schedule, 0, math_, combiners_));
      auto first = static_cast<unsigned>(part.first_arg);
      calls.push_back([&b, f, function, first] {
        std::vector<llvm::Value*> args;
        for (unsigned i = 0; i < function->arg_size(); ++i) args.push_back(f->getArg(first + i));
        b.CreateCall(function, args);
      });
    }
    EmitDispatch(b, GpuPrimitives(b, *f->getParent()).Block(), bundle.parts, calls, done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
    return OkStatus();
  }

  // Calls the part that the block belongs to, by halves. `calls` end in `done`.
  static void EmitDispatch(llvm::IRBuilder<>& b, llvm::Value* block,
                           std::span<const kernel::GpuBundle::Part> parts,
                           std::span<const std::function<void()>> calls, llvm::BasicBlock* done) {
    if (parts.size() == 1) {
      calls[0]();
      b.CreateBr(done);
      return;
    }
    size_t half = parts.size() / 2;
    llvm::BasicBlock *low = NewBlock(b, "low"), *high = NewBlock(b, "high");
    auto bound = static_cast<uint64_t>(parts[half].schedule.first_block);
    b.CreateCondBr(b.CreateICmpULT(block, b.getInt64(bound)), low, high);
    b.SetInsertPoint(low);
    EmitDispatch(b, block, parts.first(half), calls.first(half), done);
    b.SetInsertPoint(high);
    EmitDispatch(b, block, parts.subspan(half), calls.subspan(half), done);
  }

  const LoweredProgram& lowered_;
  const target::Target& target_;
  const Options& options_;
  std::unique_ptr<LlvmSession> session_;
  MathOptions math_{.keeps_nans = false};
  std::vector<llvm::Function*> entries_;
  CombinerFunctions combiners_;
};

}  // namespace

Result<std::vector<std::string>> GenerateGpu(const LoweredProgram& lowered,
                                             const target::Target& target, const Options& options) {
  std::vector<program::KernelId> kernels = LaunchedKernels(lowered);
  if (kernels.empty()) return std::vector<std::string>();
  const Effort effort = PlanEffort(lowered, options.optimization, target.gpu.emulated);
  const bool shares = effort.huge || (target.gpu.emulated && effort.large);
  std::vector<GpuModule> modules = Deal(kernels, effort, target, options);
  InParallel(static_cast<size_t>(std::max(options.threads, 1)), modules.size(), [&](size_t i) {
    const std::string name = Cat(lowered.program.name, ".", i);
    modules[i].status = backend::RunLlvm(name, options.interrupt, [&] {
      return GpuModuleEmitter(lowered, target, options).Run(name, shares, modules[i]);
    });
  });
  if (options.dump) {
    options.dump("ir-no-opt.ll", modules[0].text);
    if (!target.gpu.emulated) options.dump("ptx", modules[0].code);
  }
  std::vector<std::string> objects;
  for (GpuModule& module : modules) {
    KILN_RETURN_IF_ERROR(module.status);
    objects.push_back(std::move(module.code));
  }
  return objects;
}

}  // namespace kiln::codegen
