// GPU kernels to PTX, and to host objects for the emulator.

#include <functional>
#include <vector>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "codegen/gpu/emulate.h"
#include "codegen/gpu/nest.h"
#include "codegen/gpu/primitives.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Pass.h"
#include "llvm/Transforms/Utils.h"

namespace kiln::codegen {
namespace {

// Accumulators are emitted as stack slots; in registers they cost nothing.
void PromoteStackSlots(llvm::Module& module) {
  llvm::legacy::PassManager passes;
  passes.add(llvm::createPromoteMemoryToRegisterPass());
  passes.run(module);
}

Status CheckForm(const plan::ScheduledKernel& kernel) {
  if (kernel.form == plan::ScheduledKernel::Form::kNest) return OkStatus();
  if (kernel.form == plan::ScheduledKernel::Form::kBundle) return OkStatus();
  return Unimplemented("kernel ", kernel.kernel.name, ": matrix products on a GPU");
}

// Calls the part that the block belongs to: of parts [first, last), by halves. `calls` end in
// `done`.
void EmitDispatch(llvm::IRBuilder<>& b, llvm::Value* block,
                  std::span<const plan::ScheduledKernel> parts,
                  std::span<const std::function<void()>> calls, llvm::BasicBlock* done) {
  if (parts.size() == 1) {
    calls[0]();
    b.CreateBr(done);
    return;
  }
  size_t half = parts.size() / 2;
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* low = llvm::BasicBlock::Create(f->getContext(), "low", f);
  auto* high = llvm::BasicBlock::Create(f->getContext(), "high", f);
  auto bound = static_cast<uint64_t>(parts[half].gpu.first_block);
  b.CreateCondBr(b.CreateICmpULT(block, b.getInt64(bound)), low, high);
  b.SetInsertPoint(low);
  EmitDispatch(b, block, parts.first(half), calls.first(half), done);
  b.SetInsertPoint(high);
  EmitDispatch(b, block, parts.subspan(half), calls.subspan(half), done);
}

// The work of one thread: of a bundle, each part is a function that takes its share of the
// parameters.
Status EmitThread(llvm::Function* f, const plan::ScheduledKernel& kernel,
                  std::span<const plan::ScheduledKernel> parts, MathOptions math) {
  if (kernel.form != plan::ScheduledKernel::Form::kBundle) {
    return EmitGpuNest(f, kernel.kernel, kernel.gpu, math);
  }
  if (parts.empty()) return Internal("kernel ", kernel.kernel.name, ": a bundle without parts");
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f->getContext(), "entry", f));
  auto* done = llvm::BasicBlock::Create(f->getContext(), "done", f);
  std::vector<std::function<void()>> calls;
  unsigned first_arg = 0;
  for (const plan::ScheduledKernel& part : parts) {
    auto* function = llvm::Function::Create(
        GpuKernelType(f->getContext(), part.kernel), llvm::Function::InternalLinkage,
        Cat(kernel.kernel.name, "_part_", calls.size()), f->getParent());
    function->setAttributes(f->getAttributes());
    KILN_RETURN_IF_ERROR(EmitGpuNest(function, part.kernel, part.gpu, math));
    calls.push_back([&b, f, function, first_arg] {
      std::vector<llvm::Value*> args;
      for (unsigned i = 0; i < function->arg_size(); ++i) args.push_back(f->getArg(first_arg + i));
      b.CreateCall(function, args);
    });
    first_arg += static_cast<unsigned>(function->arg_size());
  }
  EmitDispatch(b, GpuPrimitives(b, *f->getParent()).Block(), parts, calls, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return OkStatus();
}

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

}  // namespace

Result<std::string> GeneratePtx(const plan::ScheduledKernel& kernel, const target::Gpu& gpu,
                                const Options& options,
                                std::span<const plan::ScheduledKernel> parts) {
  KILN_RETURN_IF_ERROR(CheckForm(kernel));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<LlvmSession> session,
                        LlvmSession::ForGpu(kernel.kernel.name, gpu));
  auto* f = llvm::Function::Create(GpuKernelType(session->context(), kernel.kernel),
                                   llvm::Function::ExternalLinkage, kernel.kernel.name,
                                   session->module());
  MarkKernel(f, kernel.gpu.threads);
  KILN_RETURN_IF_ERROR(EmitThread(f, kernel, parts, {.has_fma = true}));
  KILN_RETURN_IF_ERROR(LowerPrimitivesToNvptx(session->module(), gpu.sm));
  if (options.verify) KILN_RETURN_IF_ERROR(session->Verify());
  PromoteStackSlots(session->module());
  KILN_ASSIGN_OR_RETURN(std::string ptx, session->Emit());
  if (options.dump) options.dump(Cat(kernel.kernel.name, ".ptx"), ptx);
  return ptx;
}

Result<std::string> GenerateEmulated(const plan::ScheduledKernel& kernel, const target::Gpu& gpu,
                                     const target::Cpu& host, const Options& options,
                                     std::span<const plan::ScheduledKernel> parts) {
  KILN_RETURN_IF_ERROR(CheckForm(kernel));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<LlvmSession> session,
                        LlvmSession::ForCpu(kernel.kernel.name, host));
  llvm::Function* f = session->AddFunction(GpuKernelType(session->context(), kernel.kernel),
                                           kernel.kernel.name, true);
  KILN_RETURN_IF_ERROR(EmitThread(f, kernel, parts, {host.has_fma, host.has_f16}));
  KILN_RETURN_IF_ERROR(LowerPrimitivesToEmulator(session->module(), {&f, 1}));
  if (options.verify) KILN_RETURN_IF_ERROR(session->Verify());
  return session->Emit();
}

}  // namespace kiln::codegen
