// The functions of a sort: shared by the files sort*.cc. Each has the signature of a kernel, its
// items being the chunks of one row (or nothing, where it is called once); where the kernel's own
// arguments end with its scratch, theirs end with the scratch of one item, which begins with a
// state: what to do now.
#pragma once

#include <functional>
#include <vector>

#include "codegen/cpu/nest_emitter.h"
#include "codegen/llvm_session.h"
#include "kernel/schedule/cpu/sort.h"

namespace kiln::codegen {

// 64-bit words of the state.
enum class SortState : uint8_t {
  kRow,   // the number of the row
  kFrom,  // the address of what is to be sorted, and of where it goes
  kTo,
  kStep,  // of radix passes the lowest bit of the digit; of merging the length of the runs
  kSkip,  // whether the pass would change nothing
};

struct SortContext {
  LlvmSession& session;
  const kernel::Kernel& kernel;
  const kernel::Sort& sort;
  const kernel::CpuSortSchedule& schedule;
  const target::Cpu& cpu;
};

// A phase while it is emitted.
class SortPhase {
 public:
  SortPhase(const SortContext& context, llvm::Function* function);

  NestEmitter& nest() { return nest_; }
  Builder& b() { return b_; }
  llvm::Value* Int(int64_t value) { return nest_.Int(value); }

  llvm::Value* State(SortState field);
  llvm::Value* Pointer(SortState field);  // of an address
  void SetState(SortState field, llvm::Value* value);
  // The address of the item's scratch, so many bytes from its beginning.
  llvm::Value* Scratch(int64_t offset);
  // base + index * size of T
  llvm::Value* At(llvm::Type* type, llvm::Value* base, llvm::Value* index);

  // Calls f(chunk, first element, end) for each chunk of the phase's items, and with values that
  // are carried from one to the next.
  void ForEachChunk(
      const std::function<void(llvm::Value* chunk, llvm::Value* first, llvm::Value* end)>& f);
  void ForEachChunk(Values& carried,
                    const std::function<void(llvm::Value* chunk, llvm::Value* first,
                                             llvm::Value* end, Values& carried)>& f);
  llvm::Function* function() { return function_; }
  // Binds the outer variables to those of the row.
  void BindRow();

 private:
  const SortContext& context_;
  llvm::Function* function_;
  NestEmitter nest_;
  Builder& b_;
  llvm::Value* state_ = nullptr;
};

// sort_radix.cc
void EmitCountPhase(const SortContext& context, SortPhase& p);
// Prefix sums of all chunks' counts: the target of each chunk's elements of each digit.
void EmitPlacePhase(const SortContext& context, SortPhase& p);
void EmitMovePhase(const SortContext& context, SortPhase& p);

// sort_merge.cc
// Sorts each chunk, with an even number of levels or an odd one: LevelsOf a chunk.
void EmitRunsPhase(const SortContext& context, SortPhase& p);
int64_t LevelsOf(int64_t run, int64_t size);
// Where the merges of runs of kStep elements are cut, and the merges.
void EmitSplitPhase(const SortContext& context, SortPhase& p);
void EmitMergePhase(const SortContext& context, SortPhase& p);

// Of selection: sorts the first candidates of a chunk. The function's last two arguments are the
// chunk and their number.
void EmitOrderPhase(const SortContext& context, SortPhase& p);
// Merges the chunks' kept records; the result is at kFrom.
void EmitPickPhase(const SortContext& context, SortPhase& p);

// sort_partition.cc
// Functions of their own, which phases call: of few keys, and of any number.
struct SortFunctions {
  llvm::Function *network = nullptr, *quicksort = nullptr;
};
SortFunctions MakeSortFunctions(const SortContext& context);
// What parts chunks' keys are cut into; where each chunk's keys of each part are counted, or, after
// EmitPlacePhase, moved; and sorting each part, or the row where there is one chunk, at kFrom.
void EmitSplittersPhase(const SortContext& context, SortPhase& p, const SortFunctions& functions);
void EmitPartsPhase(const SortContext& context, SortPhase& p, bool moves);
void EmitQuicksortPhase(const SortContext& context, SortPhase& p, const SortFunctions& functions);

// sort_rows.cc
// The records of each chunk that come first, in order, as its first candidates. `order` is the
// function of EmitOrderPhase.
void EmitScanPhase(const SortContext& context, SortPhase& p, llvm::Function* order);
// From the operands to the sorted form, and back.
void EmitLoadPhase(const SortContext& context, SortPhase& p);
void EmitStorePhase(const SortContext& context, SortPhase& p);
// Whether keys may lose information of elements, and the code that restores it.
bool HasRestorePhase(const SortContext& context);
void EmitRestorePhase(const SortContext& context, SortPhase& p);

// The type of records.
llvm::IntegerType* RecordType(const SortContext& context);

}  // namespace kiln::codegen
