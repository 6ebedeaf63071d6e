// One LLVM module on its way to an object: context, target machine and collected diagnostics. LLVM
// must never end the process that it lives in, so every error becomes a Status here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "llvm/IR/Module.h"
#include "target/target.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace kiln::codegen {

// Quick functions are compiled without optimisations, in a third of the time: code that runs once,
// or is large and runs little. A function that took its attributes from another one is as quick as
// that until it is told otherwise.
void MakeQuick(llvm::Function* function);
void MakeOptimised(llvm::Function* function);

class LlvmSession {
 public:
  // A module for CPU code. The code is position-independent and is chosen by the target's feature
  // bits alone. Objects tell the size of each function's frame (section .stack_sizes).
  static Result<std::unique_ptr<LlvmSession>> ForCpu(std::string_view module_name,
                                                     const target::Cpu& cpu);
  // A module for PTX of one architecture.
  static Result<std::unique_ptr<LlvmSession>> ForGpu(std::string_view module_name,
                                                     const target::Gpu& gpu);
  ~LlvmSession();
  LlvmSession(const LlvmSession&) = delete;
  LlvmSession& operator=(const LlvmSession&) = delete;

  llvm::LLVMContext& context() { return *context_; }
  llvm::Module& module() { return *module_; }

  // An empty function with the attributes of the target, visible to other modules or not.
  llvm::Function* AddFunction(llvm::FunctionType* type, std::string_view name, bool external);
  // kiln_kernel_fn and kiln_entry_fn as LLVM types.
  llvm::FunctionType* KernelType();
  llvm::FunctionType* EntryType();

  // INTERNAL with the verifier's text where the module is not well-formed.
  Status Verify();
  // The module as LLVM assembly.
  std::string Text() const;
  // LLVM's time is more than linear in the instructions of a function: large ones become quick, but
  // in assembly, and RESOURCE_EXHAUSTED names one that is larger than any. Whether one became
  // quick.
  Result<bool> MakeLargeQuick();
  // Whether the quick functions are worth an object of their own.
  bool HasManyQuick() const;
  // An object file of the quick functions alone, which leave the module. Comes before Emit.
  Result<std::string> EmitQuick();
  // An object file, or for a GPU the text of the assembly. The module is used up.
  Result<std::string> Emit();
  // An object file of a module that is all quick.
  Result<std::string> EmitAllQuick();

 private:
  LlvmSession();
  Status Create(std::string_view module_name, const std::string& triple, const std::string& cpu,
                const std::string& features);
  Result<std::string> EmitModule(llvm::Module& module, llvm::TargetMachine& machine);
  Result<std::string> EmitModuleQuick(llvm::Module& module);

  std::string errors_;
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::Module> module_;
  bool assembly_ = false;
  int prefer_vector_bits_ = 0;
};

}  // namespace kiln::codegen
