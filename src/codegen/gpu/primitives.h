// What GPU kernels ask of the machine: declared functions named kiln.gpu.*, which NVPTX replaces by
// intrinsics and the emulator by its run time. `shared` is ptr addrspace(3), `global` is
// ptr addrspace(1).
//
//   i32 thread()                         index in the block, and
//   i32 block()                          of the block
//   void barrier()                       all threads of the block
//   shared shared()                      the block's dynamic shared memory, 128-byte aligned
//
// All 32 lanes of a warp take part in these:
//   i32 shuffle_down(i32 v, i32 by)      v of the lane so much higher; the own one beyond the end
//   i32 shuffle_up(i32 v, i32 by)        of the lane so much lower
//   i32 shuffle_xor(i32 v, i32 mask)     of the lane whose number differs in the mask's bits
//   i32 shuffle_index(i32 v, i32 lane)   of the lane of that number, modulo 32
//   i32 ballot(i1)                       a bit for each lane
//   void warp_barrier()                  what a lane wrote to memory is seen by the others
//
//   void fence()                         writes before it are seen on the GPU before those after it
//
// Asynchronous copies into shared memory (sm_80), all three addresses and sizes being multiples of
// the copy's size: the first `bytes` are copied, the rest is set to zero.
//   void copy_async_4, _8, _16(shared to, global from, i32 bytes)
//   void copy_commit()                   what was asked for since the last one is a group
//   void copy_wait(i32 pending)          until at most so many (a constant) groups are under way;
//                                        the others see it behind a barrier
//
// Matrix products of a warp, d = a b + c; fragments are as PTX has them ("Matrix Fragments for
// mma.m16n8k8" and so on), a row by row and b column by column, as many values of 16 or 8 bits in
// an i32 as fit:
//   {f32 x 4} mma_m16n8k8_f16(a: 2 x i32, b: 1 x i32, c: 4 x f32)     sm_75
//   {f32 x 4} mma_m16n8k16_f16, _bf16(a: 4 x i32, b: 2 x i32, c: 4 x f32)
//   {f32 x 4} mma_m16n8k8_tf32(a: 4 x i32, b: 2 x i32, c: 4 x f32)
//   {i32 x 4} mma_m16n8k32_s8(a: 4 x i32, b: 2 x i32, c: 4 x i32)
//   {f64 x 2} mma_m8n8k4_f64(a: f64, b: f64, c: 2 x f64)
// Fragments of four 8 x 8 matrices of 16-bit elements: lane 8 i + r has the address of row r of
// matrix i, 16 bytes at a multiple of 16 (sm_75).
//   {i32 x 4} load_matrix_x4, load_matrix_x4_trans(shared)
//
// Atomics are LLVM's own, atomicrmw and cmpxchg, monotonic, on address spaces 1 and 3.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

enum class Mma { kM16N8K8F16, kM16N8K16F16, kM16N8K16BF16, kM16N8K8TF32, kM16N8K32S8, kM8N8K4F64 };

// A product's name behind "kiln.gpu.", and its size: d is m by n, and a m by k.
struct MmaShape {
  const char* name;
  int m, n, k;
  int a, b, c;  // registers of a lane: i32, but f64 for kM8N8K4F64; c is of f32, i32 or f64
  int sm;
};
const MmaShape& ShapeOf(Mma mma);

class GpuPrimitives {
 public:
  explicit GpuPrimitives(llvm::IRBuilderBase& builder, llvm::Module& module)
      : b_(builder), module_(module) {}

  llvm::Value* Thread();  // i64
  llvm::Value* Block();   // i64
  void Barrier();
  llvm::Value* Shared();

  // Of a value of any scalar type of at most 64 bits.
  llvm::Value* ShuffleDown(llvm::Value* value, int delta);
  llvm::Value* ShuffleUp(llvm::Value* value, int delta);
  llvm::Value* ShuffleXor(llvm::Value* value, int mask);
  llvm::Value* ShuffleIndex(llvm::Value* value, llvm::Value* lane);  // i32
  llvm::Value* Ballot(llvm::Value* condition);                       // of i1; i32
  void WarpBarrier();
  void Fence();

  // `size` is 4, 8 or 16; `bytes`, an i32, is at most that.
  void CopyAsync(llvm::Value* to, llvm::Value* from, int size, llvm::Value* bytes);
  void CopyCommit();
  void CopyWait(int pending);

  // The registers of d; a, b and c are as in ShapeOf.
  std::vector<llvm::Value*> MatrixProduct(Mma mma, std::span<llvm::Value* const> a,
                                          std::span<llvm::Value* const> b,
                                          std::span<llvm::Value* const> c);
  std::vector<llvm::Value*> LoadMatrix(llvm::Value* row, bool transposed);  // four i32

 private:
  llvm::CallInst* Call(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* Shuffle(llvm::StringRef name, llvm::Value* value, llvm::Value* by);
  std::vector<llvm::Value*> Elements(llvm::Value* aggregate, int count);
  llvm::IRBuilderBase& b_;
  llvm::Module& module_;
};

// Accumulators are emitted as stack slots; in registers they cost nothing.
void PromoteStackSlots(llvm::Module& module);

// INTERNAL where an architecture lacks one of the primitives that are declared: LLVM's back end
// would end the process.
Status CheckPrimitives(const llvm::Module& module, int sm);

// Replaces every kiln.gpu.* call by what the NVPTX back end knows, and promotes stack slots. Shared
// memory is dynamic: its
// size is the launch's. INTERNAL where there is no such primitive, or the architecture `sm` has it
// not: the back end would end the process.
Status LowerPrimitivesToNvptx(llvm::Module& module, int sm);

}  // namespace kiln::codegen
