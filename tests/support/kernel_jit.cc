#include "support/kernel_jit.h"

#include <chrono>

namespace kiln::testing {

Result<std::unique_ptr<KernelJit>> KernelJit::Create(const target::Cpu& cpu) {
  auto jit = std::make_unique<KernelJit>();
  KILN_ASSIGN_OR_RETURN(jit->session_, codegen::LlvmSession::ForCpu("kernels", cpu));
  return jit;
}

Status KernelJit::Add(const std::string& name, const std::function<Status(llvm::Function*)>& emit) {
  return emit(session_->AddFunction(session_->KernelType(), name, true));
}

Status KernelJit::Compile() {
  KILN_RETURN_IF_ERROR(session_->Verify());
  const auto start = std::chrono::steady_clock::now();
  KILN_ASSIGN_OR_RETURN(std::string object, session_->Emit());
  KILN_ASSIGN_OR_RETURN(code_, device::Link({object}));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  milliseconds_ = took.count();
  return OkStatus();
}

kiln_kernel_fn KernelJit::Find(const std::string& name) const {
  Result<void*> address = code_->Find(name);
  return address.ok() ? reinterpret_cast<kiln_kernel_fn>(*address) : nullptr;
}

}  // namespace kiln::testing
