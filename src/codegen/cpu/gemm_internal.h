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
  // Between the rows of a tile of A, its steps, the tiles, from the first tile to the last one,
  // which may be moved back, and between the blocks of k.
  llvm::Value* a_row = nullptr;
  llvm::Value* a_step = nullptr;
  llvm::Value* a_tile = nullptr;
  llvm::Value* a_last = nullptr;
  llvm::Value* a_block = nullptr;
  // Between the slots of scratch, and those of neighbouring panels.
  llvm::Value* slot = nullptr;
  llvm::Value* panel_slot = nullptr;
  llvm::Value* panel_bytes = nullptr;  // of a slot's packed panel, with partial sums behind it
  // Tiles of rows, blocks of them, and the tiles of a block. The first row of the last tile and the
  // first vector of the last panel, which may be moved back. Steps of a block of k.
  llvm::Value* m_tiles = nullptr;
  llvm::Value* m_blocks = nullptr;
  llvm::Value* block_m = nullptr;
  llvm::Value* last_row = nullptr;
  llvm::Value* last_vector = nullptr;
  llvm::Value* kc = nullptr;
  llvm::Value* c_row = nullptr;  // between the rows of C
  // In A, between its batches, and between turns of the outermost level of a sum of several.
  llvm::Value* a_batch = nullptr;
  llvm::Value* a_level = nullptr;

  std::array<llvm::Value**, 22> all() {
    return {&n_panels,    &block_n, &k_blocks, &b_step,  &b_column, &a_row,
            &a_step,      &a_tile,  &a_last,   &a_block, &slot,     &panel_slot,
            &panel_bytes, &m_tiles, &m_blocks, &block_m, &last_row, &last_vector,
            &kc,          &c_row,   &a_batch,  &a_level};
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
  int64_t element_bytes;     // of sums, C and packed operands
  int64_t a_bytes, b_bytes;  // of A and B as they come
  // Of so many elements of B, whole bytes of them.
  int64_t BytesOfB(int64_t elements) const {
    return p.HasHalves() ? elements / 2 : elements * b_bytes;
  }
  llvm::Type* element;
  llvm::FixedVectorType* vector;
  // What packed operands have in the place of an element and a vector of k: `group` elements each,
  // as integers where these are several.
  llvm::Type* word;
  llvm::FixedVectorType* words;
  // Of packed B, whose bytes may be multiplied as s16 (kernel::PackedWordBytes).
  int64_t b_word_bytes, b_vector_bytes;
  int64_t group;
  int64_t steps;  // of the sum
  llvm::IntegerType* i64;
  // Bytes of a whole vector of n, the count of vectors that cover n, and whether the last of them
  // has lanes beyond n.
  int64_t vector_bytes;
  int64_t n_vectors;
  bool ragged;
  int unroll;  // steps of k per iteration: one that computes its operands is long enough alone
  Shape shape;
  bool any_a = false;        // what `shape` has of A and of blocks of k is told
  bool any_size = false;     // and so are the sizes, with whole blocks of k
  bool any_windows = false;  // strides in A of windows are told: of rows, batches and levels
  bool may_be_one_block =
      false;  // of several blocks of k, or of one: what `shape` has of slots is told

  void SetShapeOfA(int64_t row, int64_t step, int64_t tile, int64_t last, int64_t block);
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
  // Of words, or of vectors of them, of A and B.
  llvm::Value* MulAdd(llvm::Value* a, llvm::Value* b, llvm::Value* accumulator);
  llvm::Value* Sum(llvm::Value* x, llvm::Value* y);
  llvm::Value* Load(llvm::Type* type, llvm::Value* pointer, int64_t align);
  // Loaded elements of A or B converted to the type of computation: one, or a vector, 0 where the
  // mask is not set.
  enum class Side { kA, kB };
  llvm::Value* LoadElements(Side side, int lanes, const GemmPlace& place, llvm::Value* mask);
  // As s32, as many numbers of four bits as a vector has.
  llvm::Value* LoadHalves(int lanes, llvm::Value* pointer);
  llvm::Value* LoadB(int lanes, const GemmPlace& place, llvm::Value* mask) {
    return LoadElements(Side::kB, lanes, place, mask);
  }
  // Words of A or B as they are packed, one or a vector. Along k: neighbours in memory, of which
  // the mask has a bit for each element. Across: their elements are `stride` bytes apart, one step
  // of k each, and those from the `left`-th on, unless that is null, are 0.
  llvm::Value* LoadAlong(Side side, int lanes, const GemmPlace& place, llvm::Value* mask);
  llvm::Value* LoadAcross(Side side, int lanes, llvm::Value* pointer, llvm::Value* stride,
                          llvm::Value* mask, llvm::Value* left);
  // Elements in another type that has all values of the factor; as bits.
  llvm::Value* LoadNarrow(Side side, ElementType to, int lanes, const GemmPlace& place,
                          llvm::Value* mask);
  // Words of elements of a type, bytes or s16, as words of s16.
  llvm::Value* Widened(llvm::Value* words, ElementType from);
  // Packed B as it is multiplied.
  llvm::Value* WidenedB(llvm::Value* words) {
    return s.unit == kernel::GemmUnit::kS16Pair ? Widened(words, FactorOf(Side::kB)) : words;
  }
  // Bytes with the other sign: 128 more, or less.
  llvm::Value* Flip(llvm::Value* words);
  // The sums of the bytes of each word, added to the accumulators.
  llvm::Value* AddBytes(Side side, llvm::Value* words, llvm::Value* accumulator);
  // What the sums of one operand's bytes are to be multiplied with, where the other's are flipped.
  int64_t FlippedBy() const;
  ElementType TypeOf(Side side) const { return side == Side::kA ? p.TypeOfA() : p.TypeOfB(); }
  // Of the elements of packed words.
  ElementType FactorOf(Side side) const;
  const GemmPrologue* PrologueOf(Side side) const {
    return side == Side::kA ? a_prologue : b_prologue;
  }
  // Steps of so many elements of k, and how many of those are left from a step on; null where all
  // words of the sum are whole.
  llvm::Value* StepsOf(llvm::Value* elements);
  llvm::Value* Left(llvm::Value* elements, llvm::Value* step);
  // A vector of packed B.
  llvm::Value* LoadPacked(llvm::Value* pointer);
  llvm::Value* LoadVector(llvm::Value* pointer, llvm::Value* mask, bool aligned);
  void StoreVector(llvm::Value* value, llvm::Value* pointer, llvm::Value* mask, bool aligned);
  void StorePacked(llvm::Value* value, llvm::Value* pointer);
  // Lane i is set when i < count.
  llvm::Value* Mask(llvm::Value* count);
  llvm::Constant* Mask(int64_t count) { return Mask(count, s.lanes); }
  llvm::Constant* Mask(int64_t count, int64_t lanes);
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
  // How far one of the batch is from the first in A, B or C; in bytes.
  llvm::Value* BatchOffsetA(const std::vector<llvm::Value*>& indices);
  llvm::Value* BatchOffsetB(const std::vector<llvm::Value*>& indices);
  llvm::Value* BatchOffsetC(const std::vector<llvm::Value*>& indices);
  llvm::Value* BatchOffset(const std::vector<llvm::Value*>& indices,
                           llvm::function_ref<int64_t(const kernel::GemmBatchDimension&)> bytes);
  // Steps and elements of k in block `k_block`, and how far A or B is there from where the first
  // one begins; in bytes.
  llvm::Value* KCount(llvm::Value* k_block) { return KCount(k_block, steps, s.kc); }
  llvm::Value* KElements(llvm::Value* k_block) { return KCount(k_block, p.TotalK(), s.kc * group); }
  llvm::Value* KCount(llvm::Value* k_block, int64_t total, int64_t in_block);
  llvm::Value* KOffsetA(llvm::Value* k_block);
  llvm::Value* KOffsetB(llvm::Value* k_block);
  // Where a panel is in packed B, and a tile in packed A; in bytes. Operands that every batch
  // shares are packed once.
  llvm::Value* PackedBOffset(llvm::Value* batch, llvm::Value* k_block, llvm::Value* panel,
                             llvm::Value* k_count);
  llvm::Value* PackedAOffset(llvm::Value* batch, llvm::Value* k_block, llvm::Value* tile);
};

// A line of the caches.
constexpr int64_t kLineBytes = 64;

// Lines that the loop over k asks for: in each iteration `lines` from a pointer on, which goes on
// by `step` bytes until it is at `last`, if that is set. In rows, where they have a size, it goes
// on from the end of each with the next one.
struct LinesAhead {
  llvm::Value* pointer;
  llvm::Value* step;
  int64_t lines = 1;
  llvm::Value* last = nullptr;
  llvm::Value* row_bytes = nullptr;
  llvm::Value* row_step = nullptr;  // from row to row
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

// The same by tiles of AMX: the sums are row by row in memory, and added to what is there where
// `add` is set. Functions that have tiles begin with their sizes, and end with their release.
void EmitTileSums(Emitter& e, const TileOperands& operands, llvm::Value* sums, bool add);
void EmitTileSizes(Emitter& e);
void EmitTileRelease(Emitter& e);
// Their parts: the tiles at the beginning, those after kTileSteps more words of each row of A and
// each column of B, and at the end.
void EmitTileBegin(Emitter& e, llvm::Value* sums, bool add);
void EmitTileStep(Emitter& e, const TileOperands& operands, llvm::Value* a, llvm::Value* b);
void EmitTileEnd(Emitter& e, llvm::Value* sums);

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

// Puts a vector of a tile in memory into C, which begins at `c`. Where `adds` is set, unless it is
// null, it is added to what is there; C's vectors are contiguous then.
void StoreResults(Emitter& e, llvm::Value* slot, llvm::Value* c, llvm::Value* row,
                  llvm::Value* vector, llvm::Value* adds = nullptr);

// Whether a gemm's accumulators go straight to C, and are added there where the sum has blocks.
bool IsDirect(const kernel::GemmProblem& p, const kernel::GemmSchedule& s);

// Emits all of a gemm: the loops around its tiles. With an epilogue in registers `finish` does the
// tiles that are not whole, if there are any.
void EmitLoops(Emitter& e, const LoopOperands& operands,
               const GemmEpilogue* in_registers = nullptr);

// Packs `count` panels from `panel` on, panel_bytes apart: of each, the head, and steps of nv
// vectors for k elements of the sum. `source` is B's first column at the first step.
void EmitPackPanels(Emitter& e, llvm::Value* source, llvm::Value* panel, llvm::Value* count,
                    llvm::Value* k, llvm::Value* packed, llvm::Value* panel_bytes);

// An empty function beside `like`, with its attributes, which other modules do not see.
llvm::Function* NewFunction(const llvm::Function& like, llvm::FunctionType* type,
                            const std::string& name);

Status Check(const kernel::GemmProblem& problem, const kernel::GemmSchedule& schedule);

}  // namespace kiln::codegen::gemm
