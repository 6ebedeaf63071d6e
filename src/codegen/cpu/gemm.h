// Gemms as LLVM IR for the CPU, by a schedule of kernel/schedule/cpu/gemm.h.
//
// Vectors are emitted as such, so that no pass pipeline of LLVM is needed. The k loop has a fence
// of a single thread between its steps: it emits no instruction, and keeps the instruction
// scheduler from hoisting loads until accumulators spill. LLVM's loop strength reduction and
// machine scheduler can be off (`-disable-lsr -enable-misched=false`): compiling is then a third
// faster, and the code as good.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "kernel/schedule/cpu/gemm.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

struct GemmPrologue;

// Where the operands are in the kernel's `args`.
struct GemmOperands {
  int a = 0;         // or its packed form, when the schedule says pack_a
  int b = 1;         // or its packed form, when the schedule says kPrepacked
  int c = 2;         // unused with an epilogue
  int scratch = -1;  // scratch_bytes of the schedule, aligned to 64; unused when that is 0
  const GemmPrologue* a_prologue = nullptr;
  const GemmPrologue* b_prologue = nullptr;
  // The module has other gemms of its family whatever their sizes (SharedGemmFamily), and the code
  // is theirs, too. For one alone there is less, and it is faster, where sizes are constants.
  bool of_any_size = false;
};

// Where elements of an operand are: so many columns of C further than those at `first`, which have
// been computed before. Without columns they are computed for themselves.
struct GemmPlace {
  llvm::Value* pointer = nullptr;
  llvm::Value* first = nullptr;
  int64_t columns = 0;
};

// The prologue of an operand's elements.
struct GemmPrologue {
  // Of elements of the type in memory (in registers), one or a vector, what is multiplied. They
  // have been loaded from their place on, of a vector those lanes whose bits are set in the mask,
  // if there is one. The builder may end in another block than it began in.
  std::function<llvm::Value*(llvm::IRBuilder<>&, llvm::Value* loaded, int lanes, GemmPlace place,
                             llvm::Value* mask)>
      compute;
  // Called at the start of each function that computes, with its `args`.
  std::function<void(llvm::IRBuilder<>&, llvm::Value* args)> begin;
  std::string text;  // equal text, equal code
};

// One vector of results: lane i is C[batch, m, n + i], or C[batch, m + i, n].
struct GemmVector {
  llvm::Value* value = nullptr;
  int lanes = 1;
  bool along_m = false;
  std::vector<llvm::Value*> batch;  // i64, one per batch dimension
  llvm::Value* m = nullptr;         // i64
  llvm::Value* n = nullptr;         // i64
  // <lanes x i1>, or null when every lane is an element of C.
  llvm::Value* mask = nullptr;
};

// An array that an epilogue reads at the place of each result, in vectors that are contiguous along
// n. Strides are in elements.
struct GemmRows {
  int arg = 0;
  int64_t element_bytes = 4;
  int64_t first = 0;  // where the first row begins
  int64_t m = 0;      // more than 0
  std::vector<int64_t> batch;

  bool operator==(const GemmRows&) const = default;
};

// The epilogue of a gemm. It stores what it computes; nothing else is stored.
struct GemmEpilogue {
  // Emits what is done with a vector of results. The builder stands in the kernel or in a function
  // with the same first two parameters: mostly in the loop over the vectors of a tile of results
  // still in the first-level cache. Every element is visited exactly once, so that an output may
  // take the place of an operand that is read at the same index. It may add basic blocks, and
  // leaves the builder at the end of its code.
  std::function<void(llvm::IRBuilder<>&, const GemmVector&)> emit;
  // Whether the gemm may have code of its own, which takes LLVM some five milliseconds: the
  // epilogue is then part of it, once for each vector of a tile, which it finds in a register.
  bool may_have_own_gemm = false;
  // Such a gemm sums a tile while the lines that the epilogue wants of these are on their way.
  std::vector<GemmRows> reads = {};
  // Whether vectors are wanted along m, where all tiles have rows of their own: tiles are then
  // transposed.
  bool along_m = false;

  explicit operator bool() const { return emit != nullptr; }
};

// Whether the gemm's tiles can be finished in vectors along m.
bool MayFinishAlongM(const kernel::GemmProblem& problem, const kernel::GemmSchedule& schedule);

// Fills the empty body of `function`, which has the signature of kiln_kernel_fn and the attributes
// of the target. A, B and C do not overlap; C may be written by several threads at once with the
// same values.
Status EmitGemm(llvm::Function* function, const kernel::GemmProblem& problem,
                const kernel::GemmSchedule& schedule, const GemmOperands& operands,
                const GemmEpilogue& epilogue = {});

// Names the code that the gemm has in common with others of its module, for what has no prologues:
// the same for gemms that take their code from another, if it is emitted before them, which are
// those of one block of k from those of several. Empty where a gemm shares nothing.
std::string SharedGemmFamily(const kernel::GemmProblem& problem,
                             const kernel::GemmSchedule& schedule, bool has_epilogue,
                             bool of_any_size);

// Kernels that bring a whole operand into the schedule's packed form: items are
// schedule.pack_a_items or pack_b_items, `source` and `packed` index their args.
Status EmitGemmPackA(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed,
                     const GemmPrologue* prologue = nullptr);
Status EmitGemmPackB(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed,
                     const GemmPrologue* prologue = nullptr);

}  // namespace kiln::codegen
