#include "support/emulated.h"

#include "base/strings.h"
#include "codegen/gpu/emulate.h"
#include "llvm/IR/Metadata.h"

namespace kiln::testing {
namespace {

// An empty kernel in the session's module, then what the test puts in it.
llvm::Function* AddKernel(codegen::LlvmSession& session, int parameters,
                          const HandWritten::Body& body, const std::string& name) {
  llvm::LLVMContext& context = session.context();
  std::vector<llvm::Type*> types(static_cast<size_t>(parameters),
                                 llvm::PointerType::get(context, codegen::kGlobalSpace));
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
  llvm::Function* f = session.AddFunction(type, name, true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", f));
  codegen::GpuPrimitives gpu(b, session.module());
  body(b, gpu, f);
  b.CreateRetVoid();
  return f;
}

}  // namespace

HandWritten::HandWritten(int parameters, const Body& body, const std::string& name, int sm,
                         bool quick) {
  status_ = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<codegen::LlvmSession> session,
                          codegen::LlvmSession::ForCpu(name, target::HostCpu().cpu));
    llvm::Function* f = AddKernel(*session, parameters, body, name);
    KILN_RETURN_IF_ERROR(session->Verify());
    KILN_RETURN_IF_ERROR(codegen::LowerPrimitivesToEmulator(session->module(), {&f, 1}, sm, quick));
    KILN_RETURN_IF_ERROR(session->Verify());
    KILN_ASSIGN_OR_RETURN(object_, quick ? session->EmitAllQuick() : session->Emit());
    KILN_ASSIGN_OR_RETURN(code_, device::EmulatedCode::Load(object_));
    KILN_ASSIGN_OR_RETURN(kernel_, code_->Find(name));
    return OkStatus();
  }();
}

Status HandWritten::Run(const device::GpuGrid& grid, std::span<const device::GpuSpan> args,
                        const device::EmulatorOptions& options) {
  KILN_RETURN_IF_ERROR(status_);
  return RunEmulated(*kernel_, grid, args, options);
}

Result<std::string> HandWritten::Ptx(int sm, int parameters, const Body& body) {
  KILN_ASSIGN_OR_RETURN(target::Target target, target::NvidiaGpu(sm));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<codegen::LlvmSession> session,
                        codegen::LlvmSession::ForGpu("k", target.gpu));
  llvm::Function* f = AddKernel(*session, parameters, body, "k");
  llvm::LLVMContext& context = session->context();
  session->module()
      .getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(f), llvm::MDString::get(context, "kernel"),
                    llvm::ConstantAsMetadata::get(
                        llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1))}));
  KILN_RETURN_IF_ERROR(codegen::LowerPrimitivesToNvptx(session->module(), sm));
  KILN_RETURN_IF_ERROR(session->Verify());
  return session->Emit();
}

}  // namespace kiln::testing
