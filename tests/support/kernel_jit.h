// Compiles kernels of generated code in the process, for tests and benchmarks of the emitters.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "codegen/llvm_session.h"
#include "device/cpu/link.h"
#include "frame/frame.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::testing {

class KernelJit {
 public:
  static Result<std::unique_ptr<KernelJit>> Create(const target::Cpu& cpu);

  // Adds a function with the signature of kiln_kernel_fn to the module, filled by `emit`.
  Status Add(const std::string& name, const std::function<Status(llvm::Function*)>& emit);
  // Verifies and compiles what was added.
  Status Compile();
  // Milliseconds that Compile took, without the verifier.
  double compile_milliseconds() const { return milliseconds_; }
  kiln_kernel_fn Find(const std::string& name) const;

 private:
  std::unique_ptr<codegen::LlvmSession> session_;
  std::unique_ptr<device::LinkedCode> code_;
  double milliseconds_ = 0;
};

}  // namespace kiln::testing
