// How one gemm is cut for a CPU: register tile, blocks, packing. Data only.
//
// C[m, n] = sum over k of A[m, k] * B[k, n], for every index of the batch dimensions. Vectors run
// along n, so that a gemm whose result is contiguous along m is given transposed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernel/schedule/cpu/gemm_unit.h"
#include "target/target.h"
#include "tensor/element_type.h"

namespace kiln::kernel {

// One batch dimension: its extent, and the strides of the three arrays in elements.
struct GemmBatchDimension {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

// One level of a sum around the innermost one: its extent, and the strides of A and B in elements.
struct GemmSumLevel {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
};

// Types that products are taken in: f32, f64, s32, u32, s64 and u64.
bool HasGemm(ElementType type);
// AVX-512: twice the registers, each a line of the caches, splats in the instruction that
// multiplies, and masks.
bool HasWideVectors(const target::Cpu& cpu);

// Ops on a vector of an operand, times how often a gemm reads it, that cost little beside the gemm.
inline constexpr int64_t kMaxVectorWork = 16;

struct GemmProblem {
  ElementType type = ElementType::kF32;  // of products, sums and C; see HasGemm
  // The types of A and B in memory, if different: they are converted while packing or, in place, on
  // each read.
  ElementType a_type = ElementType::kInvalid;
  ElementType b_type = ElementType::kInvalid;
  // Of operands that are computed from what is in memory, a type that has all values of theirs.
  ElementType a_factor = ElementType::kInvalid;
  ElementType b_factor = ElementType::kInvalid;
  // Where there are two elements of B in each byte, the first in its lower half: their type. B's
  // strides are those of elements then.
  ElementType b_half = ElementType::kInvalid;
  // Of B that is computed from what is in memory: about how many cheap ops an element of it takes.
  int64_t b_ops = 0;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  std::vector<GemmBatchDimension> batch;  // outermost first
  // Where one stride does not say where the steps of the sum are, as in the windows of a
  // convolution: k is the innermost of several levels, and these are the others, outermost first.
  std::vector<GemmSumLevel> k_outer;
  // Strides in elements; any values, 0 and negative ones too.
  int64_t a_m = 1;
  int64_t a_k = 1;
  int64_t b_k = 1;
  int64_t b_n = 1;
  int64_t c_m = 1;
  int64_t c_n = 1;
  // Where A and B begin in their arrays; in elements.
  int64_t a_first = 0;
  int64_t b_first = 0;
  // A may be packed by a kernel of its own.
  bool may_pack_a = true;
  // B does not change between runs: it may be packed once, by the kernel of EmitGemmPackB.
  bool b_constant = false;

  // A, B and C row-major without gaps, one batch dimension when `batch` is not 1.
  static GemmProblem RowMajor(ElementType type, int64_t m, int64_t n, int64_t k, int64_t batch = 1);
  // The same gemm read as C^T = B^T * A^T.
  GemmProblem Transposed() const;
  int64_t BatchSize() const;
  // The number of batches, of the last dimensions, with the same B: their rows are processed
  // together.
  int64_t RowBatches() const;
  // Steps of the sum at all levels, and below each of the outermost one's.
  int64_t TotalK() const;
  int64_t InnerK() const;
  // Whether a_k, or b_k, is how far it is from each step of the sum to the next.
  bool IsLinearA() const;
  bool IsLinearB() const;
  ElementType TypeOfA() const { return a_type == ElementType::kInvalid ? type : a_type; }
  ElementType TypeOfB() const { return b_type == ElementType::kInvalid ? type : b_type; }
  bool HasHalves() const { return b_half != ElementType::kInvalid; }
  // The narrowest known types that have all values of A and B.
  ElementType FactorOfA() const { return a_factor == ElementType::kInvalid ? TypeOfA() : a_factor; }
  ElementType FactorOfB() const { return b_factor == ElementType::kInvalid ? TypeOfB() : b_factor; }
  std::string ToString() const;
};

// Steps of k in an item of the kernel that packs A.
inline constexpr int64_t kPackSteps = 32;

enum class GemmKind {
  // Outer products: splats of A times vectors of B along n.
  kOuter,
  // Inner products: vectors of A and B along k, summed across lanes at the end. For gemms with few
  // rows whose B is contiguous along k, and is read once, and for those with so few columns that
  // they would leave lanes of vectors along n empty.
  kInner,
};

// Where the micro-kernel finds B. Packed for inner products, it is one panel: its columns, each
// contiguous along k.
enum class GemmB {
  kInPlace,
  // Each panel is packed into scratch by the item that uses it.
  kPackPanel,
  // B was packed by another kernel: its operand has the schedule's packed form.
  kPrepacked,
};

// A step of the sum is GroupOf(unit) elements of k, a word of each operand. The last steps of a sum
// are filled up with zeros: to a whole word, and of tiles to kTileSteps words.
struct GemmSchedule {
  GemmKind kind = GemmKind::kOuter;
  GemmUnit unit = GemmUnit::kElement;
  GemmB b = GemmB::kInPlace;
  // A is read from the packed form that the kernel of EmitGemmPackA makes.
  bool pack_a = false;
  bool fma = false;
  bool f16 = false;  // instructions that convert between f16 and f32
  int lanes = 1;     // sums of one vector
  // The register tile: mr rows by nv vectors (kOuter) or by nr columns (kInner).
  int mr = 1;
  int nv = 1;
  int nr = 1;
  // Of few columns (kOuter): vectors along contiguous rows of A times splats of B. The tile is mr
  // rows, whole vectors, by all columns, and transposed at its end.
  bool by_columns = false;
  // Tiles of mr rows, and panels of nv vectors, that cover C. The last of each is moved back so
  // that it ends with C's last row or vector; packed panels are cut in the same way.
  int64_t row_batches = 1;  // of the batch go together, as if they were more rows
  int64_t row_tiles = 1;    // of each of them
  int64_t m_tiles = 1;      // of all of them
  int64_t n_panels = 1;
  // One item is a panel by block_m tiles. Items run along n first, or items_along_m. A call of the
  // kernel does neighbouring items together, up to block_n panels of one block of rows, or of all
  // rows: large calls move memory in large pieces, and small items divide among any number of
  // threads. Tiles of rows are the inner loop, unless panels_inner.
  int64_t block_m = 1;
  int64_t block_n = 1;
  bool items_along_m = false;
  bool panels_inner = false;
  // With panels_inner so many tiles meet a panel one after another, before the next panel.
  int64_t group_m = 1;
  // The steps of the sum are cut into blocks of kc (whole steps of the outermost level, where there
  // are several), each summed on its own and added to the sum of those before.
  int64_t kc = 1;
  int64_t k_blocks = 1;
  // Sums of a packed panel begin with a row of numbers in front of it, in place of 0.
  bool has_head = false;
  // Steps of k per iteration of the inner loop.
  int unroll = 1;
  // The tiles of a block prefetch the next block of B; inner products prefetch the next columns.
  bool prefetch_b = false;
  // Tiles of rows prefetch the rows of the next one, and their own sums of the blocks of k before.
  bool prefetch_a = false;
  // Between groups of tiles it is asked whether the run is to end: a call takes long.
  bool polls = false;
  // Work items of the kernel, and the pieces of them that are worth their dispatch.
  int64_t items = 1;
  int64_t max_tasks = 1;
  int64_t m_blocks = 1;
  // Bytes of the packed forms, 0 where they are not used, and of the scratch operand, which has a
  // slot of slot_bytes per item: a packed panel, then partial sums. All are aligned to 64 bytes.
  bool a_shared = false;  // the same A, or B, for every batch: packed once
  bool b_shared = false;
  int64_t packed_a_bytes = 0;
  // Of packed words of A that were neighbours along k, and still are: from row to row. Others are
  // in the tiles of each block of k, mr of them for each step.
  int64_t a_row_bytes = 0;
  // Of columns of B that were packed along k: from one to the next.
  int64_t b_column_bytes = 0;
  int64_t packed_b_bytes = 0;
  int64_t panel_bytes = 0;
  int64_t slot_bytes = 0;
  int64_t panel_stride = 0;  // of the slots that two neighbouring panels use
  int64_t scratch_bytes = 0;
  // Items of the two packing kernels: kPackSteps steps of k of A, its rows, or tiles of a block of
  // k (PacksByTiles), and panels of B.
  int64_t pack_a_items = 0;
  int64_t pack_b_items = 0;
  // Estimated cycles of one thread, to compare schedules with.
  double cycles = 0;

  int64_t group() const { return GroupOf(unit); }
  // Elements of k that go together.
  int64_t whole() const { return group() * (IsTile(unit) ? kTileSteps : 1); }
  // Rows in front of a packed panel's steps.
  int64_t head_rows() const { return has_head ? 1 : 0; }
  // Steps of the sum at all levels, and below each of the outermost one's.
  int64_t Steps(const GemmProblem& problem) const;
  int64_t InnerSteps(const GemmProblem& problem) const;
  std::string ToString() const;
};

// A pure function of its arguments, which the number of threads is not among: results have the same
// bits however many run. Fails on types that it does not know and on empty results.
Result<GemmSchedule> ChooseGemmSchedule(const target::Cpu& cpu, const GemmProblem& problem);

// Whether the words of A that a unit multiplies are in memory as they are: neighbours along k, in
// whole words, of the unit's type.
bool HasWordsOfA(const GemmProblem& problem, GemmUnit unit);

// Whether packed tiles of A are transposed from rows along k, one after the other.
bool PacksByTiles(const GemmProblem& problem, const GemmSchedule& schedule);

// The type of the elements of packed B. Bytes that are multiplied as s16 are packed as they are,
// for half of the memory and its traffic: tiles widen them as they read.
ElementType PackedTypeOfB(const GemmProblem& problem, GemmUnit unit);
// Bytes of a word of packed B.
int64_t PackedWordBytes(const GemmProblem& problem, GemmUnit unit);

// Whether the unit, which multiplies signed bytes by unsigned ones, needs one operand's signs
// changed: A's of outer products, B's of inner ones.
bool FlipsBytes(const GemmProblem& problem, GemmUnit unit);

// Derives counts and sizes from what was chosen: kind, unit, b, pack_a, mr, nv, nr, by_columns,
// block_m, block_n, items_along_m, panels_inner, group_m, kc, unroll, prefetch_a, prefetch_b and
// polls. ChooseGemmSchedule ends with it; tests and tuners call it after changing a choice.
void CompleteGemmSchedule(const target::Cpu& cpu, const GemmProblem& problem,
                          GemmSchedule& schedule);

// Whether C has a few columns, but no whole vectors of them, and runs faster as its transpose, an
// epilogue included: tiles are transposed as they are finished.
bool HasFewColumns(const target::Cpu& cpu, const GemmProblem& problem);
// Whether the problem should be given transposed: its result is contiguous along m, or has one
// column, or few. A caller that can index its epilogue either way asks before it chooses.
bool PrefersTransposedGemm(const target::Cpu& cpu, const GemmProblem& problem);

}  // namespace kiln::kernel
