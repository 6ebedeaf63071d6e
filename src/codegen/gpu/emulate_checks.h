// Checks in kernels for the emulated GPU: of each access of memory, and of loops that do not end.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/status.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// The layouts of frame/emulated.h.
llvm::StructType* EmulatedThreadType(llvm::LLVMContext& context);

// An access of memory, and the base of its address.
struct MemoryAccess {
  llvm::Instruction* instruction = nullptr;
  llvm::Value* address = nullptr;
  int64_t bytes = 0, align = 1;
  int kind = 0;                 // KILN_ACCESS_*
  int64_t object = 0;           // as in KILN_ACCESS_PARAMETER_SHIFT
  llvm::Value* base = nullptr;  // of a local or constant array, of `extent` bytes
  int64_t extent = 0;

  uint64_t Encoded() const;
};

// The base of a pointer: KILN_ACCESS_SHARED and so on. Parameters are `function`'s arguments.
int64_t ObjectOf(llvm::Value* pointer);

// All of a kernel's, where pointers are still made of its arguments, but for those of the kernel's
// parts that it calls. INTERNAL where memory is accessed in a way that cannot be checked.
Result<std::vector<MemoryAccess>> FindAccesses(llvm::Function& function,
                                               const std::set<const llvm::Function*>& parts);

// A parameter as loaded from the thread: its address, and its size, an i64.
struct LoadedParameter {
  llvm::Value* address = nullptr;
  llvm::Value* bytes = nullptr;
};

// Puts a check in front of each access: where the code had better be small than fast, by functions.
void CheckAccesses(llvm::Function& function, const std::vector<MemoryAccess>& accesses,
                   const std::vector<LoadedParameter>& parameters, int64_t shared_granule,
                   bool small);

// Counts how often loops go back.
void CheckLoops(llvm::Function& function);

// A function of the emulator's table.
llvm::FunctionCallee EmulatorFunction(llvm::Module& module, llvm::StringRef name,
                                      llvm::ArrayRef<llvm::Type*> types);
// Loads a field of the thread that never changes while it runs.
llvm::Value* LoadThreadField(llvm::IRBuilderBase& b, llvm::Function& function, unsigned field);

}  // namespace kiln::codegen
