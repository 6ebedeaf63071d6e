// What GPU kernels ask of the machine: declared functions named kiln.gpu.*, which NVPTX replaces by
// intrinsics and the emulator by calls of its run time.
//
//   i32  kiln.gpu.thread()                    index in the block, and
//   i32  kiln.gpu.block()                     of the block
//   void kiln.gpu.barrier()                   all threads of the block
//   i32  kiln.gpu.shuffle_down(i32, i32)      the value of the lane so much higher in the warp; the
//                                             lane's own beyond its end
//   ptr addrspace(3) kiln.gpu.shared()        the block's shared memory, 16-byte aligned
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

class GpuPrimitives {
 public:
  explicit GpuPrimitives(llvm::IRBuilderBase& builder, llvm::Module& module)
      : b_(builder), module_(module) {}

  llvm::Value* Thread();  // i64
  llvm::Value* Block();   // i64
  void Barrier();
  // Of a value of any scalar type of at most 64 bits.
  llvm::Value* ShuffleDown(llvm::Value* value, int delta);
  llvm::Value* Shared();

 private:
  llvm::Value* Call(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* ShuffleWord(llvm::Value* word, int delta);
  llvm::IRBuilderBase& b_;
  llvm::Module& module_;
};

inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

// Replaces every kiln.gpu.* call by what the NVPTX back end knows; shared memory becomes a variable
// of `shared_bytes`.
void LowerPrimitivesToNvptx(llvm::Module& module, int64_t shared_bytes);

}  // namespace kiln::codegen
