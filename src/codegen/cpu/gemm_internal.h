// Shared declarations of the files that emit gemms.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "codegen/control_flow.h"
#include "codegen/cpu/gemm.h"

namespace kiln::codegen::gemm {

// What code that gemms of several shapes share is told of each of them; constants in all other
// code. Distances are in bytes.
struct Shape {
  llvm::Value* n_panels = nullptr;  // that cover n
  llvm::Value* block_n = nullptr;   // of these, how many go together
  llvm::Value* k_blocks = nullptr;
  llvm::Value* b_step = nullptr;    // between steps of B in place
  llvm::Value* b_column = nullptr;  // between its columns
  // Between the rows of a tile of A, its steps, the tiles, and from the first tile to the last one,
  // which may be moved back.
  llvm::Value* a_row = nullptr;
  llvm::Value* a_step = nullptr;
  llvm::Value* a_tile = nullptr;
  llvm::Value* a_last = nullptr;
  // Between the slots of scratch, and those of neighbouring panels.
  llvm::Value* slot = nullptr;
  llvm::Value* panel_slot = nullptr;

  std::array<llvm::Value**, 11> all() {
    return {&n_panels, &block_n, &k_blocks, &b_step, &b_column,  &a_row,
            &a_step,   &a_tile,  &a_last,   &slot,   &panel_slot};
  }
};

// The function being filled, its types, and small helpers. Offsets and strides are in bytes where
// a name says so, in elements otherwise.
struct Emitter {
  Emitter(llvm::Function* function, const kernel::GemmProblem& problem,
          const kernel::GemmSchedule& schedule, const GemmPrologue* a_prologue = nullptr,
          const GemmPrologue* b_prologue = nullptr);

  llvm::Function* function;
  const kernel::GemmProblem& p;
  const kernel::GemmSchedule& s;
  const GemmPrologue* a_prologue;
  const GemmPrologue* b_prologue;
  llvm::IRBuilder<> b;
  int64_t element_bytes;     // of products, sums, C and packed operands
  int64_t a_bytes, b_bytes;  // of A and B as they come
  llvm::Type* element;
  llvm::FixedVectorType* vector;
  llvm::IntegerType* i64;
  // Bytes of a whole vector of n, the count of vectors that cover n, and whether the last of them
  // has lanes beyond n.
  int64_t vector_bytes;
  int64_t n_vectors;
  bool ragged;
  int unroll;  // steps of k per iteration: one that computes its operands is long enough alone
  Shape shape;
  bool any_a = false;  // what `shape` has of A and of blocks of k is told
  bool may_be_one_block =
      false;  // of several blocks of k, or of one: what `shape` has of slots is told

  llvm::Value* Int(int64_t value) { return llvm::ConstantInt::getSigned(i64, value); }
  // The i-th of the kernel's args.
  llvm::Value* Arg(int index);
  llvm::Value* Offset(llvm::Value* pointer, llvm::Value* bytes);
  llvm::Value* Offset(llvm::Value* pointer, int64_t bytes);
  // value * factor + addend, with constants folded; `addend` may be null.
  llvm::Value* Scale(llvm::Value* value, int64_t factor);
  llvm::Value* Add(llvm::Value* x, llvm::Value* y);
  llvm::Value* Multiply(llvm::Value* x, llvm::Value* y);
  llvm::Value* Min(llvm::Value* x, llvm::Value* y) { return EmitMin(b, x, y); }
  llvm::Value* MulAdd(llvm::Value* x, llvm::Value* y, llvm::Value* accumulator);
  llvm::Value* Sum(llvm::Value* x, llvm::Value* y);
  llvm::Value* Load(llvm::Type* type, llvm::Value* pointer, int64_t align);
  // Loaded elements of A or B converted to the type of computation: one, or a vector, 0 where the
  // mask is not set.
  llvm::Value* LoadA(int lanes, llvm::Value* pointer, llvm::Value* mask);
  llvm::Value* LoadB(int lanes, llvm::Value* pointer, llvm::Value* mask) {
    return LoadB(lanes, GemmPlace{pointer, pointer, 0}, mask);
  }
  llvm::Value* LoadB(int lanes, const GemmPlace& place, llvm::Value* mask);
  llvm::Value* LoadOperand(ElementType from, const GemmPrologue* prologue, int lanes,
                           const GemmPlace& place, llvm::Value* mask);
  llvm::Value* LoadVector(llvm::Value* pointer, llvm::Value* mask, bool aligned);
  void StoreVector(llvm::Value* value, llvm::Value* pointer, llvm::Value* mask, bool aligned);
  // Lane i is set when i < count.
  llvm::Value* Mask(llvm::Value* count);
  llvm::Constant* Mask(int64_t count);
  // Asks for a line for reading: into the first cache, or only into the second and outwards.
  enum class Level { kFirst, kSecond };
  void Prefetch(llvm::Value* pointer, Level level = Level::kSecond);
  // Keeps the instruction scheduler from moving loads across.
  void Fence();

  // Loops of gemms stand in the order in which they run, and have names.
  static LoopForm FormOf(const char* name) {
    return {.name = name, .after = "", .index = name, .nsw = false, .after_last = true};
  }
  void Loop(llvm::Value* begin, llvm::Value* end, int64_t step, const char* name,
            llvm::function_ref<void(llvm::Value*)> body);

  // First row of a tile (of one of the batch) and first vector of a panel, moved back at the edge.
  llvm::Value* TileRow(llvm::Value* tile);
  llvm::Value* PanelVector(llvm::Value* panel);
  // Splits a linear batch index into one index per batch dimension.
  std::vector<llvm::Value*> BatchIndices(llvm::Value* linear);
  llvm::Value* BatchOffset(const std::vector<llvm::Value*>& indices,
                           int64_t kernel::GemmBatchDimension::*stride, int64_t bytes);
  // Steps of k in block `k_block`, and how far A or B is there from where the first one begins; in
  // bytes.
  llvm::Value* KCount(llvm::Value* k_block);
  llvm::Value* KOffsetA(llvm::Value* k_block);
  llvm::Value* KOffsetB(llvm::Value* k_block);
  // Where a panel is in packed B, and a tile from step k on in packed A; in bytes. Operands that
  // every batch shares are packed once.
  llvm::Value* PackedBOffset(llvm::Value* batch, llvm::Value* k_block, llvm::Value* panel,
                             llvm::Value* k_count);
  llvm::Value* PackedAOffset(llvm::Value* batch, llvm::Value* tile, llvm::Value* k);
};

// A line of the caches.
constexpr int64_t kLineBytes = 64;

// Lines that the loop over k asks for: in each iteration `lines` from a pointer on, which goes on
// by `step` bytes until it is at `last`, if that is set.
struct LinesAhead {
  llvm::Value* pointer;
  llvm::Value* step;
  int64_t lines = 1;
  llvm::Value* last = nullptr;
  Emitter::Level level = Emitter::Level::kSecond;
};

// The operands of one register tile. Rows of A are a_m apart, steps of k a_k and b_k, vectors of B
// b_vector; all in bytes.
struct TileOperands {
  llvm::Value* a;
  llvm::Value* b;
  bool a_packed;
  bool b_packed;
  llvm::Value* a_m;
  llvm::Value* a_k;
  llvm::Value* b_k;
  int64_t b_vector;
  llvm::Value* mask = nullptr;  // of the panel's last vector, when B is read in place
  llvm::Value* k = nullptr;     // steps
  std::vector<LinesAhead> prefetch = {};
  std::vector<llvm::Value*> columns = {};   // of inner products: offsets of the columns from b
  std::vector<llvm::Value*> odd_rows = {};  // odd multiples of an a_m that is no constant
};

// Emits the loops over k; the accumulators, row by row (mr * nv vectors).
std::vector<llvm::Value*> EmitOuterTile(Emitter& e, const TileOperands& operands);

// One step of k of a tile whose schedule goes by columns, into accumulators by vectors of rows and
// then columns; and these as the rows of an outer tile.
void ColumnsStep(Emitter& e, const TileOperands& operands, llvm::Value* a, llvm::Value* b, int step,
                 std::vector<llvm::Value*>& accumulators);
std::vector<llvm::Value*> RowsOfColumns(Emitter& e, const std::vector<llvm::Value*>& accumulators);

// Emits mr * nr inner products; scalars, row by row.
std::vector<llvm::Value*> EmitInnerTile(Emitter& e, const TileOperands& operands);

// Where the operands are: `c`, or the function `finish` to which tiles of results are handed.
struct LoopOperands {
  llvm::Value* a = nullptr;
  llvm::Value* b = nullptr;
  llvm::Value* c = nullptr;
  llvm::Value* scratch = nullptr;
  llvm::Value* finish = nullptr;
};

// void finish(frame, args, tile, batch, row, first_row, vector, first_vector): of the tile in
// memory that begins with a row and a vector of the results, the rows and vectors from the first
// on.
llvm::FunctionType* FinishType(llvm::LLVMContext& context);

// Vector (i, v) of a tile, which begins at a row and vector of the results.
llvm::Value* SlotOf(Emitter& e, llvm::Value* tile, llvm::Value* i, llvm::Value* v);

// Calls `body` for the vectors of a tile, but for the rows and vectors that an earlier tile or
// panel has covered.
void ForEachVector(Emitter& e, llvm::Value* first_row, llvm::Value* first_vector,
                   const std::function<void(llvm::Value*, llvm::Value*)>& body);

// Puts a vector of a tile in memory into C, which begins at `c`.
void StoreResults(Emitter& e, llvm::Value* slot, llvm::Value* c, llvm::Value* row,
                  llvm::Value* vector);

// Whether a gemm's accumulators go straight to C.
bool IsDirect(const kernel::GemmProblem& p, const kernel::GemmSchedule& s);

// Emits all of a gemm: the loops around its tiles. With an epilogue in registers `finish` does the
// tiles that are not whole, if there are any.
void EmitLoops(Emitter& e, const LoopOperands& operands,
               const GemmEpilogue* in_registers = nullptr);

// Packs `count` panels from `panel` on, panel_bytes apart: of each, k steps of nv vectors.
// `source` is B's first column at the first step.
void EmitPackPanels(Emitter& e, llvm::Value* source, llvm::Value* panel, llvm::Value* count,
                    llvm::Value* k, llvm::Value* packed, llvm::Value* panel_bytes);

// An empty function beside `like`, with its attributes, which other modules do not see.
llvm::Function* NewFunction(const llvm::Function& like, llvm::FunctionType* type,
                            const std::string& name);

Status Check(const kernel::GemmProblem& problem, const kernel::GemmSchedule& schedule);

}  // namespace kiln::codegen::gemm
