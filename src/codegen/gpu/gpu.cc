// GPU kernels to PTX, and to host objects for the emulator.

#include "base/strings.h"
#include "codegen/codegen.h"
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
  return Unimplemented("kernel ", kernel.kernel.name, ": matrix products on a GPU");
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
                                const Options& options) {
  KILN_RETURN_IF_ERROR(CheckForm(kernel));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<LlvmSession> session,
                        LlvmSession::ForGpu(kernel.kernel.name, gpu));
  auto* f = llvm::Function::Create(GpuKernelType(session->context(), kernel.kernel),
                                   llvm::Function::ExternalLinkage, kernel.kernel.name,
                                   session->module());
  MarkKernel(f, kernel.gpu.threads);
  KILN_RETURN_IF_ERROR(EmitGpuNest(f, kernel.kernel, kernel.gpu, {.has_fma = true}));
  LowerPrimitivesToNvptx(session->module(), kernel.gpu.shared_bytes);
  if (options.verify) KILN_RETURN_IF_ERROR(session->Verify());
  PromoteStackSlots(session->module());
  KILN_ASSIGN_OR_RETURN(std::string ptx, session->Emit());
  if (options.dump) options.dump(Cat(kernel.kernel.name, ".ptx"), ptx);
  return ptx;
}

// The kernel, and around it `void kiln_thread(ptr args)`, which takes the addresses of its
// parameters from an array.
Result<std::string> GenerateEmulated(const plan::ScheduledKernel& kernel, const target::Gpu& gpu,
                                     const target::Cpu& host, const Options& options) {
  KILN_RETURN_IF_ERROR(CheckForm(kernel));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<LlvmSession> session,
                        LlvmSession::ForCpu(kernel.kernel.name, host));
  llvm::LLVMContext& context = session->context();
  llvm::FunctionType* type = GpuKernelType(context, kernel.kernel);
  llvm::Function* f = session->AddFunction(type, "kernel", false);
  KILN_RETURN_IF_ERROR(EmitGpuNest(f, kernel.kernel, kernel.gpu, {host.has_fma, host.has_f16}));
  auto* wrapper_type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                               {llvm::PointerType::get(context, 0)}, false);
  llvm::Function* wrapper = session->AddFunction(wrapper_type, "kiln_thread", true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", wrapper));
  std::vector<llvm::Value*> args;
  for (unsigned i = 0; i < type->getNumParams(); ++i) {
    auto* slot = b.CreateConstGEP1_32(b.getPtrTy(), wrapper->getArg(0), i);
    args.push_back(b.CreateAddrSpaceCast(b.CreateLoad(b.getPtrTy(), slot), type->getParamType(i)));
  }
  b.CreateCall(f, args);
  b.CreateRetVoid();
  if (options.verify) KILN_RETURN_IF_ERROR(session->Verify());
  PromoteStackSlots(session->module());
  return session->Emit();
}

}  // namespace kiln::codegen
