#include "kernel/schedule/cpu/gemm.h"

#include <algorithm>
#include <limits>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

// Whether B is of a narrower type than products are, and widened to be multiplied.
bool IsConverted(const GemmProblem& p, const GemmSchedule& s) {
  return s.unit == GemmUnit::kElement && ByteWidth(p.TypeOfB()) < ByteWidth(p.type);
}

// Whether so many tiles, each of which computes B anew, take longer than one that packs it.
bool IsMadeTooOften(const GemmProblem& p, int64_t tiles) {
  return tiles > 1 && p.b_ops * tiles > kMaxVectorWork;
}

// Windows overlap: packed they would take several times the memory.
bool MayPackA(const GemmProblem& p) { return p.may_pack_a && p.IsLinearA(); }

bool IsAlongK(const GemmProblem& p) { return (p.a_k == 1 && p.b_k == 1) || p.k == 1; }

// Fewer rows meet B where it is: interleaving its elements would take longer than their products,
// for which bytes are widened to integers that take long to multiply.
int64_t RowsWorthPacking(GemmUnit unit) { return GroupOf(unit) == 4 ? 2 : 4; }

// The unit for the operands' types, where it has words of them.
GemmUnit ChooseUnit(const target::Cpu& cpu, const GemmProblem& p) {
  if (p.HasHalves()) return GemmUnit::kElement;
  const GemmUnit unit = UnitFor(cpu, p.type, p.FactorOfA(), p.FactorOfB());
  // Words do not reach from one level of a sum into the next.
  const int64_t whole = GemmSchedule{.unit = unit}.whole();
  if (p.TotalK() < GroupOf(unit) || (!p.k_outer.empty() && p.k % whole != 0)) {
    return GemmUnit::kElement;
  }
  if (!MayPackA(p) && !HasWordsOfA(p, unit)) return GemmUnit::kElement;
  const bool packs = p.b_constant || p.m * p.RowBatches() >= RowsWorthPacking(unit);
  return packs || IsAlongK(p) ? unit : GemmUnit::kElement;
}

// Whether a tile's accumulators, vectors of B and a splat of A fit the registers.
bool Fits(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s, int mr, int nv) {
  int registers = mr * nv;
  if (mr == 1) {
    registers += 1;  // vectors of B are read from memory by the one instruction that uses them
  } else if (nv == 1) {
    registers += HasWideVectors(cpu) ? 1 : 2;
  } else {
    registers += nv + 1;
  }
  if (!s.fma || FlipsBytes(p, s.unit) || s.unit == GemmUnit::kS16Pair) registers += 1;
  return registers <= cpu.vector_registers;
}

// The most rows that fit beside nv vectors, 0 when not even one does.
int MostRows(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s, int nv) {
  int mr = 0;
  while (mr < 30 && Fits(cpu, p, s, mr + 1, nv)) ++mr;
  return mr;
}

// Pieces of a gemm that are worth their dispatch: work of less than a microsecond is not worth
// sharing.
int64_t TasksFor(const GemmProblem& p) {
  const double flops = 2.0 * static_cast<double>(p.BatchSize()) * static_cast<double>(p.m) *
                       static_cast<double>(p.n) * static_cast<double>(p.TotalK());
  return static_cast<int64_t>(flops / (1 << 18));
}

// Estimated cycles of a tile for one step of k: two multiply-adds and two loads per cycle, and
// chains of additions that must not wait for themselves. AVX2 has half the registers, and splats
// that are instructions of their own: it is slower at loads, and chains as short as the latency of
// an addition, of four cycles or five, do wait.
double StepCycles(const target::Cpu& cpu, GemmUnit unit, int mr, int nv) {
  // Multiplications take the ports of half of the additions behind them, and vectors of B are
  // widened.
  if (unit == GemmUnit::kS16Pair) return 0.7 * mr * nv + 0.25 * mr + 0.6 * nv;
  const bool wide = HasWideVectors(cpu);
  return std::max({mr * nv / 2.0, (mr + nv) / (wide ? 2.0 : 1.5), wide ? 4.0 : 5.0});
}

// Cycles that each tile takes beside its steps: its stores, mostly.
double TileCycles(int mr, int nv) { return 12 + 0.75 * mr * nv; }

// Vectors of a tile whose steps are long beside the counting of a loop.
constexpr int kLargeTile = 20;

// Whether the few columns of C can be accumulators side by side: A's rows are contiguous, and B is
// read where it is.
bool MayGoByColumns(const target::Cpu& cpu, const GemmProblem& p) {
  return p.a_m == 1 && p.k > 1 && p.n > 1 && p.n < cpu.vector_registers && p.b_n == 1 &&
         p.TypeOfA() == p.type && p.TypeOfB() == p.type &&
         p.TotalK() * p.n * ByteWidth(p.type) <= cpu.l2_bytes / 2;
}

// Takes such a tile where it covers C in less time than `best`.
void ChooseColumns(const target::Cpu& cpu, const GemmProblem& p, double& best, GemmSchedule& s) {
  const auto n = static_cast<int>(p.n);
  const int others = (HasWideVectors(cpu) ? 0 : 1) + (s.fma ? 0 : 1);
  for (int vectors = 1; vectors * (n + 1) + others <= cpu.vector_registers; ++vectors) {
    const int rows = vectors * s.lanes;
    if (rows > p.m) break;
    const double step = StepCycles(cpu, s.unit, n, vectors);
    // Each row is put together, beside its store.
    const double end = TileCycles(rows, static_cast<int>(CeilDiv(p.n, s.lanes))) + 3 * rows;
    const double cycles =
        static_cast<double>(CeilDiv(p.m, rows)) * (static_cast<double>(p.TotalK()) * step + end);
    if (cycles >= best) continue;
    best = cycles;
    s.mr = rows;
    s.nv = static_cast<int>(CeilDiv(p.n, s.lanes));
    s.by_columns = true;
  }
}

// Two tiles of rows by two of columns, each of which meets two others.
void ChooseTiles(const GemmProblem& p, GemmSchedule& s) {
  s.nv = static_cast<int>(std::min<int64_t>(CeilDiv(p.n, s.lanes), 2));
  s.mr = static_cast<int>(p.m >= 2 * kTileRows ? 2 * kTileRows : std::min<int64_t>(p.m, kTileRows));
  s.kc = std::max<int64_t>(s.Steps(p), 1);
  s.unroll = 1;
  constexpr double kTileCycles = 16;
  const int64_t tiles = CeilDiv(p.m, kTileRows) * CeilDiv(p.n, s.lanes) * s.Steps(p) / kTileSteps;
  s.cycles = kTileCycles * static_cast<double>(tiles * p.BatchSize());
}

// The register tile that covers C in the least time.
void ChooseTile(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  const int64_t vectors = CeilDiv(p.n, s.lanes);
  // Rows of a transposed A are read across: every step begins a cache line, however few rows.
  const bool across = p.a_k != 1 && p.k > 1;
  const int64_t total_k = s.Steps(p);
  // Rows that are a multiple of a page apart share the sets of the first cache.
  const int64_t a_bytes = ByteWidth(p.TypeOfA());
  const bool aliased = p.a_k == 1 && p.TotalK() * a_bytes >= 2048 && p.a_m * a_bytes % 2048 == 0;
  double best = std::numeric_limits<double>::infinity();
  for (int nv = 1; nv <= std::min<int64_t>(vectors, p.m <= 2 ? 8 : 6); ++nv) {
    const int most = MostRows(cpu, p, s, nv);
    for (int mr = static_cast<int>(std::min<int64_t>(most, p.m)); mr >= 1; --mr) {
      const double tiles =
          static_cast<double>(CeilDiv(p.m, mr)) * static_cast<double>(CeilDiv(vectors, nv));
      const double k = static_cast<double>(std::max<int64_t>(total_k, 1));
      double cycles = tiles * (k * StepCycles(cpu, s.unit, mr, nv) + TileCycles(mr, nv));
      if (aliased && mr > 10) cycles *= 1.06;
      if (across) cycles += tiles * k;
      // Panels beyond the first cache take a little of every step.
      const int64_t panel_bytes = total_k * nv * s.lanes * PackedWordBytes(p, s.unit);
      if (4 * panel_bytes > 3 * cpu.l1_bytes) cycles += tiles * k * 0.5;
      if (cycles < best) {
        best = cycles;
        s.mr = mr;
        s.nv = nv;
      }
    }
  }
  if (s.unit == GemmUnit::kElement && MayGoByColumns(cpu, p)) ChooseColumns(cpu, p, best, s);
  s.cycles = best * static_cast<double>(p.BatchSize());
  s.kc = std::max<int64_t>(total_k, 1);
  // A few steps inside of another loop are no loop. One step of a large tile hides the loop's own
  // instructions already, and twice the code would take LLVM longer.
  const int64_t inner = p.k / s.group();
  if (!p.k_outer.empty() && inner <= 8) {
    s.unroll = static_cast<int>(inner);
  } else {
    // LLVM lets a multiply-add overwrite a splat that nothing else reads, but for those of the step
    // that ends the loop: its accumulators stay where they are.
    const bool reads_once = s.nv == 1 && !HasWideVectors(cpu);
    s.unroll = s.by_columns || reads_once || s.mr * s.nv >= kLargeTile ? 1 : 2;
  }
}

struct InnerTile {
  int mr = 1, nr = 1;
};

// Accumulators, the rows' vectors and one of a column fit the registers; beside bytes whose signs
// change, the rows' own sums.
InnerTile InnerTileOf(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  const bool flips = FlipsBytes(p, s.unit);
  const bool adds = !s.fma || s.unit == GemmUnit::kS16Pair;
  const int registers = cpu.vector_registers - (adds || flips ? 2 : 1);
  const int most = static_cast<int>(std::min<int64_t>({8, s.lanes, p.n}));
  InnerTile tile;
  while (2 * tile.nr <= (p.m <= 2 ? most : std::min(most, 4))) tile.nr *= 2;
  const int rows = std::min(registers / (tile.nr + (flips ? 2 : 1)), 8);
  tile.mr = static_cast<int>(CeilDiv(p.m, CeilDiv(p.m, rows)));
  return tile;
}

// Few rows or few columns, whose operands are contiguous along k: packing would cost more than it
// brings.
bool PrefersInner(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  const bool along_k = (p.a_k == 1 || p.k == 1) && (p.b_k == 1 || p.k == 1);
  const int64_t lanes = s.lanes * s.group();
  if (!along_k || !p.k_outer.empty() || p.k < 2 * lanes) return false;
  if (p.n == 1) return true;
  if (p.b_n == 1 || IsMadeTooOften(p, CeilDiv(p.m, InnerTileOf(cpu, p, s).mr))) return false;
  if (p.b_constant) return p.m <= (IsConverted(p, s) ? 8 : 4);
  return p.m <= 8 || (p.m <= 24 && p.k >= 16 * lanes);
}

void ChooseInner(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  s.kind = GemmKind::kInner;
  s.kc = p.k;
  const InnerTile tile = InnerTileOf(cpu, p, s);
  s.mr = tile.mr;
  s.nr = tile.nr;
  // Some 64 kB of B stay in the cache until all rows have met them.
  s.nv = static_cast<int>(std::min<int64_t>(2, CeilDiv(p.n, s.lanes)));
  s.block_m = CeilDiv(p.m, s.mr);
  s.block_n = 1;
  if (p.n <= s.nv * s.lanes) s.block_m = std::max<int64_t>(1, CeilDiv(s.block_m, 16));
  const int64_t bytes = ByteWidth(p.TypeOfB());
  s.prefetch_b = bytes < ByteWidth(p.type) && p.k * p.n * bytes > cpu.l2_bytes / 2;
  s.cycles = static_cast<double>(p.BatchSize() * p.m * p.n) * static_cast<double>(p.k) /
             static_cast<double>(s.lanes * s.group());
}

// More columns leave few lanes of vectors along n empty.
constexpr int64_t kMostNarrow = 16;

// Whether C has so few columns that inner products may be taken for them, with B packed along k
// unless it is so.
bool MayBeNarrow(const GemmProblem& p, const GemmSchedule& s) {
  const bool in_place = p.b_k == 1;
  return p.n > 1 && p.n <= std::min<int64_t>(2 * s.lanes, kMostNarrow) && p.k >= 4 * s.lanes &&
         p.a_k == 1 && (in_place ? p.b_ops == 0 : p.b_n == 1) && p.k_outer.empty() &&
         s.unit == GemmUnit::kElement && p.TypeOfA() == p.type && p.TypeOfB() == p.type;
}

// The part of the estimate for outer products that inner ones must stay below.
constexpr double kClearly = 0.85;

// Takes the inner products of fewest cycles where they are clearly faster than tiles of outer
// products: all lanes of their vectors have elements.
bool ChooseNarrow(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  if (!MayBeNarrow(p, s)) return false;
  const bool in_place = p.b_k == 1;
  const int64_t vectors = CeilDiv(p.n, s.lanes), steps = CeilDiv(p.k, s.lanes);
  // Squares of lanes by lanes elements are loaded, transposed and stored.
  const double packing =
      in_place || p.b_constant ? 0 : 4.0 * static_cast<double>(s.lanes * steps * vectors);
  const int others = s.fma ? 1 : 2;
  const double limit = kClearly * s.cycles / static_cast<double>(p.BatchSize());
  double best = limit;
  for (int nr = 2; nr <= std::min<int64_t>(p.n, 8); ++nr) {
    const int64_t groups = CeilDiv(p.n, nr);
    if (groups * nr > vectors * s.lanes) continue;
    for (int mr = 1; mr <= std::min<int64_t>(p.m, 8); ++mr) {
      const int sums = mr * nr;
      if (sums + mr + others > cpu.vector_registers) break;
      const double step = std::max({sums / 2.0, (mr + nr) / 2.0, HasWideVectors(cpu) ? 4.0 : 5.0});
      // Lanes are added by shuffles, as many vectors at once as they have lanes.
      const double end =
          12 + 3.0 * static_cast<double>(RoundUp(int64_t{sums}, int64_t{s.lanes})) + 2 * sums;
      const auto tiles = static_cast<double>(CeilDiv(p.m, mr) * groups);
      const double cycles = packing + tiles * (static_cast<double>(steps) * step + end);
      if (cycles >= best) continue;
      best = cycles;
      s.mr = mr;
      s.nr = nr;
    }
  }
  if (best == limit) return false;
  s.kind = GemmKind::kInner;
  s.b = in_place ? GemmB::kInPlace : p.b_constant ? GemmB::kPrepacked : GemmB::kPackPanel;
  s.nv = static_cast<int>(vectors);
  s.by_columns = false;
  s.unroll = 1;
  s.row_batches = 1;
  // A call packs B once for all of its items, each of which has room for it.
  s.items_along_m = true;
  s.block_m = CeilDiv(CeilDiv(p.m, s.mr), std::clamp<int64_t>(TasksFor(p), 1, 16));
  s.cycles = best * static_cast<double>(p.BatchSize());
  return true;
}

// Rows of B this wide are a stream that the hardware prefetches well: about a page.
constexpr int64_t kStreamBytes = 4096;

// Rows of B at a multiple of this share so few sets of the first cache that a panel of them does
// not stay there.
constexpr int64_t kSetBytes = 1024;

// The traversal of B.
enum class Traffic {
  // All of B stays in the second cache: a tile of A meets all of it while in the first.
  kResident,
  // B is used where it is, a few steps of k at a time, so that the rows in use need no more
  // translations of addresses than the machine keeps, and are wide pieces of memory.
  kStream,
  // A stays in the cache, and panels of B pass by, one at a time.
  kPass,
  // As many packed panels as stay in the second cache meet all of A.
  kBlock,
  // As many packed panels as a part of the third cache holds meet all of A, packed, too: each of
  // them a few tiles, which stay in the second cache, so that memory is read once, or a few times,
  // and in order.
  kGroup,
};

// Sums of more steps are cut, into blocks of at most so many: any sum, and one that LongBlock cuts.
constexpr int64_t kMaxSteps = 2048, kMaxBlockSteps = 768;
constexpr int64_t kMaxShortSteps = 1536, kMaxLongBlockSteps = 1024;
// A that is packed for its panels is no smaller, and blocks of its sums no larger.
constexpr int64_t kLeastStepsToPack = 1024, kLeastRowsToPack = 1536, kLeastColumnsToPack = 768;
constexpr int64_t kMaxPackedSteps = 512;

// Cuts a sum of k steps into equal blocks of at most so many.
int64_t BlockOf(int64_t k, int64_t most) { return RoundUp(CeilDiv(k, CeilDiv(k, most)), 2); }

// More registers and wider rows of a tile bring panels from the second cache fast enough.
bool MayGroup(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  return !HasWideVectors(cpu) && s.unit == GemmUnit::kElement && p.k_outer.empty();
}

// Steps of a block of a sum so long that a panel of all of it would take a large part of the second
// cache: few panels would stay there, and all of A pass by for these few. 0 where it is not, or
// where A is in the caches anyway.
int64_t LongBlock(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  const int64_t k = s.Steps(p);
  if (!MayGroup(cpu, p, s) || k <= kMaxShortSteps) return 0;
  const int64_t kc = BlockOf(k, kMaxLongBlockSteps),
                column_bytes = p.m * s.row_batches * ByteWidth(p.type);
  const bool stays =
      p.b_constant ? column_bytes * k <= cpu.l3_bytes / 4 : column_bytes * kc <= cpu.l2_bytes;
  return stays ? 0 : kc;
}

// Whether A is packed because it is read again and again, from beyond the second cache.
bool PacksForPanels(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  const int64_t k = s.Steps(p), rows = p.m * s.row_batches;
  return MayGroup(cpu, p, s) && MayPackA(p) && p.a_k == 1 && k >= kLeastStepsToPack &&
         rows >= kLeastRowsToPack && p.n >= kLeastColumnsToPack &&
         rows * k * ByteWidth(p.type) > 8 * cpu.l2_bytes;
}

Traffic ChooseTraffic(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  if (PacksForPanels(cpu, p, s)) {
    s.b = p.b_constant ? GemmB::kPrepacked : GemmB::kPackPanel;
    return Traffic::kGroup;
  }
  if (s.by_columns) return Traffic::kResident;
  const int64_t bytes = ByteWidth(p.TypeOfB());
  const int64_t rows = p.m * s.row_batches;
  const int64_t m_tiles = CeilDiv(p.m, s.mr) * s.row_batches;
  const int64_t k = p.TotalK();
  // Each of a batch's constant operands comes from memory, once.
  const bool b_shared = std::ranges::all_of(p.batch, [](const auto& d) { return d.b == 0; });
  const int64_t constants = p.b_constant && !b_shared ? p.BatchSize() / s.row_batches : 1;
  const bool resident = constants * k * p.n * bytes <= cpu.l2_bytes / 2;
  const int64_t a_bytes = rows * s.Steps(p) * ByteWidth(p.type);
  const bool a_resident = a_bytes <= cpu.l2_bytes / 3;
  // Packing would make a narrow operand wide that few rows read once.
  const bool b_constant = p.b_constant && !(IsConverted(p, s) && rows <= 8);
  const bool in_order = (p.b_n == 1 || p.n == 1) && s.unit == GemmUnit::kElement;
  const bool masked = p.n % s.lanes != 0 && !cpu.has_masks;
  // Operands computed or converted by many tiles are packed; narrow integers are cheaper to
  // multiply if recognisable.
  const bool again =
      IsMadeTooOften(p, m_tiles) || (IsConverted(p, s) && IsFloat(p.type) && m_tiles > 3);
  if (in_order && !again && !(masked && (m_tiles > 2 || cpu.vector_bytes < 32))) {
    const bool wide = HasWideVectors(cpu);
    const bool shares_sets = p.b_k * bytes % kSetBytes == 0 && k * kSetBytes > cpu.l1_bytes;
    if (resident && (wide || b_constant || rows < 64 || !shares_sets)) return Traffic::kResident;
    if (m_tiles == 1) return Traffic::kStream;
    if (!b_constant) {
      const bool passes = rows >= 96 && a_resident && p.b_k * bytes < kStreamBytes;
      if (wide && passes) return Traffic::kPass;
      if (rows <= (wide ? 256 : 31)) return Traffic::kStream;
    }
  }
  s.b = b_constant ? GemmB::kPrepacked : GemmB::kPackPanel;
  if (!b_constant) return Traffic::kBlock;
  if (resident) return Traffic::kResident;
  if (LongBlock(cpu, p, s) > 0) return Traffic::kBlock;
  // Nothing prefetches the first block of each thread, so that it should be small. Every panel has
  // A read again, for which the third cache is fast enough; it is not where each word meets 16
  // columns as fast as pairs do.
  const bool waits = s.unit == GemmUnit::kS16Pair && s.nv * s.lanes <= 16;
  const int64_t most = waits ? 2 * cpu.l2_bytes : cpu.l3_bytes / 2;
  return a_bytes <= most ? Traffic::kPass : Traffic::kBlock;
}

// Cuts a long sum, so that a few packed panels of a block stay in the second cache.
void CutSum(int64_t k, GemmSchedule& s) {
  if (k > kMaxSteps) s.kc = BlockOf(k, kMaxBlockSteps);
}

// Some milliseconds of work. Blocks of panels should not be cut for a look at whether the run is to
// end.
constexpr int64_t kTasksOfSlice = 1024;

// Blocks of packed panels, and groups of tiles that meet a panel one after another.
void ChoosePackedBlocks(const target::Cpu& cpu, const GemmProblem& p, Traffic traffic,
                        GemmSchedule& s) {
  const int64_t step_bytes = s.nv * s.lanes * PackedWordBytes(p, s.unit);
  auto group_of = [&](int64_t bytes) { return bytes / (s.mr * s.kc * ByteWidth(p.type)); };
  if (traffic == Traffic::kGroup) {
    s.pack_a = true;
    s.kc = BlockOf(s.Steps(p), std::min(kMaxPackedSteps, cpu.l1_bytes / step_bytes));
    s.block_n = std::max(cpu.l3_bytes / 8, cpu.l2_bytes) / (s.kc * step_bytes);
    s.group_m = group_of(cpu.l1_bytes * 3 / 2);
    return;
  }
  if (const int64_t kc = LongBlock(cpu, p, s)) {
    // A panel is as large as the first cache, or larger; the tiles that it meets, one after
    // another, stay in the second one.
    s.kc = kc;
    s.block_n = cpu.l2_bytes / (kc * step_bytes);
    s.group_m = group_of(cpu.l2_bytes / 4);
    return;
  }
  CutSum(s.Steps(p), s);
  s.block_n = std::min<int64_t>(8, cpu.l2_bytes * 3 / 5 / (s.kc * step_bytes));
  // A short panel stays in the first cache; the tiles, each a short part of A, stay in the second
  // one, with the block's other panels.
  const bool is_short = s.b == GemmB::kPackPanel && s.kc * step_bytes <= cpu.l1_bytes / 3;
  if (MayGroup(cpu, p, s) && is_short) s.group_m = group_of(cpu.l2_bytes / 8);
}

void ChooseBlocks(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  // A that is read across costs more than its packing once some panels have met it.
  s.pack_a = p.a_k != 1 && p.k > 1 && p.m > 1 && CeilDiv(p.n, s.lanes) >= 16;
  // So does A that is converted element by element.
  if (p.TypeOfA() != p.type && p.m > 1 && CeilDiv(p.n, s.lanes) >= 2 * s.nv) {
    s.pack_a = true;
  }
  if (s.unit != GemmUnit::kElement) s.pack_a = !HasWordsOfA(p, s.unit);
  if (!MayPackA(p)) s.pack_a = false;
  const int64_t k = s.Steps(p);
  const int64_t rows = p.m * s.row_batches;
  const int64_t m_tiles = CeilDiv(p.m, s.mr) * s.row_batches;
  const int64_t panels = CeilDiv(CeilDiv(p.n, s.lanes), s.nv);
  // Threads split the larger one of A and B.
  s.items_along_m = p.n >= rows;
  int64_t items = 64;  // divide well among the threads of today's machines
  const Traffic traffic = ChooseTraffic(cpu, p, s);
  switch (traffic) {
    case Traffic::kResident:
      s.panels_inner = true;
      s.block_n = panels;
      if (!s.items_along_m) items = std::numeric_limits<int64_t>::max();
      break;
    case Traffic::kStream:
      s.panels_inner = true;
      // Pieces of rows are short, and the hardware prefetches them late or not at all. Narrower
      // vectors leave it the time, and have several times the instructions for as many lines.
      s.prefetch_b = HasWideVectors(cpu) || IsConverted(p, s);
      s.kc = CeilDiv(k, CeilDiv(k, m_tiles > 1 ? 64 : 16));
      s.block_n = CeilDiv(m_tiles > 1 && !HasWideVectors(cpu) ? kStreamBytes / 4 : kStreamBytes,
                          s.nv * s.lanes * ByteWidth(p.TypeOfB()));
      // Blocks of rows read all of B again.
      items = s.items_along_m ? 1 : panels * std::min<int64_t>(4, rows / p.n);
      break;
    case Traffic::kPass:
      s.items_along_m = true;
      s.prefetch_b = true;
      if (s.b == GemmB::kPrepacked) CutSum(k, s);
      break;
    case Traffic::kBlock:
    case Traffic::kGroup:
      s.panels_inner = true;
      s.prefetch_b = s.b == GemmB::kPrepacked;
      ChoosePackedBlocks(cpu, p, traffic, s);
      s.items_along_m = true;
      s.polls = !IsTile(s.unit) && TasksFor(p) > kTasksOfSlice;
      // Each item has room for a packed panel.
      if (s.b == GemmB::kPackPanel) items = 16;
      break;
  }
  s.block_m =
      CeilDiv(m_tiles, std::min(m_tiles, CeilDiv(items, panels * (p.BatchSize() / s.row_batches))));
}

// Rows of A so short that the hardware sees the stream of all of them.
constexpr int64_t kShortRowBytes = 256;
// More columns meet each row for so long that its way from memory is a small part of the time.
constexpr int64_t kMostWaiting = 256;

// Whether tiles wait for rows of A that come from beyond the second cache: of each row they read
// too little at a time for the hardware to see as many streams as there are rows.
bool WaitsForRows(const target::Cpu& cpu, const GemmProblem& p, const GemmSchedule& s) {
  if (HasWideVectors(cpu) || s.unit != GemmUnit::kElement || s.pack_a || s.by_columns) return false;
  if (p.a_k != 1 || !p.k_outer.empty() || s.mr == 1 || p.n > kMostWaiting) return false;
  const int64_t bytes = ByteWidth(p.TypeOfA());
  const bool follow = p.a_m == p.k;
  return p.k * bytes > kShortRowBytes && (s.kind == GemmKind::kOuter || follow) &&
         p.m * s.row_batches * s.kc * bytes > cpu.l2_bytes;
}

// Rows begin with a line, and not at a distance that shares the sets of the first cache.
int64_t PackedRowBytes(int64_t bytes) {
  const int64_t lines = RoundUp(bytes, 64);
  return lines % 2048 == 0 ? lines + 64 : lines;
}

}  // namespace

bool HasWideVectors(const target::Cpu& cpu) { return cpu.vector_bytes == 64; }

bool HasGemm(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kS32:
    case ElementType::kU32:
    case ElementType::kS64:
    case ElementType::kU64:
      return true;
    default:
      return false;
  }
}

ElementType PackedTypeOfB(const GemmProblem& p, GemmUnit unit) {
  switch (unit) {
    case GemmUnit::kElement:
      return p.type;
    case GemmUnit::kBf16Pair:
    case GemmUnit::kBf16Tile:
      return ElementType::kBF16;
    case GemmUnit::kF16Tile:
      return ElementType::kF16;
    case GemmUnit::kS16Pair:
    case GemmUnit::kByteQuad:
    case GemmUnit::kAnyByteQuad:
    case GemmUnit::kByteTile:
      break;
  }
  return p.FactorOfB();
}

int64_t PackedWordBytes(const GemmProblem& p, GemmUnit unit) {
  return GroupOf(unit) * ByteWidth(PackedTypeOfB(p, unit));
}

bool HasWordsOfA(const GemmProblem& p, GemmUnit unit) {
  const bool narrow = ByteWidth(p.TypeOfA()) * GroupOf(unit) == ByteWidth(p.type);
  const int64_t whole = GemmSchedule{.unit = unit}.whole();
  return narrow && p.a_factor == ElementType::kInvalid && p.a_k == 1 && p.k % whole == 0;
}

bool PacksByTiles(const GemmProblem& p, const GemmSchedule& s) {
  return p.a_k == 1 && s.unit == GemmUnit::kElement;
}

bool FlipsBytes(const GemmProblem& p, GemmUnit unit) {
  return unit == GemmUnit::kByteQuad && IsSigned(p.FactorOfA()) == IsSigned(p.FactorOfB());
}

GemmProblem GemmProblem::RowMajor(ElementType type, int64_t m, int64_t n, int64_t k,
                                  int64_t batch) {
  GemmProblem p;
  p.type = type;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a_m = k;
  p.b_k = n;
  p.c_m = n;
  if (batch != 1) p.batch.push_back({.size = batch, .a = m * k, .b = k * n, .c = m * n});
  return p;
}

GemmProblem GemmProblem::Transposed() const {
  GemmProblem t = *this;
  std::swap(t.m, t.n);
  std::swap(t.a_type, t.b_type);
  std::swap(t.a_factor, t.b_factor);
  std::swap(t.a_first, t.b_first);
  t.a_m = b_n;
  t.a_k = b_k;
  t.b_k = a_k;
  t.b_n = a_m;
  std::swap(t.c_m, t.c_n);
  for (GemmBatchDimension& d : t.batch) std::swap(d.a, d.b);
  for (GemmSumLevel& level : t.k_outer) std::swap(level.a, level.b);
  t.b_constant = false;
  t.b_ops = 0;
  return t;
}

int64_t GemmProblem::BatchSize() const {
  int64_t size = 1;
  for (const GemmBatchDimension& d : batch) size *= d.size;
  return size;
}

int64_t GemmProblem::RowBatches() const {
  int64_t size = 1;
  for (size_t i = batch.size(); i-- > 0 && batch[i].b == 0;) size *= batch[i].size;
  return size;
}

int64_t GemmProblem::TotalK() const {
  int64_t steps = k;
  for (const GemmSumLevel& level : k_outer) steps *= level.size;
  return steps;
}

int64_t GemmProblem::InnerK() const { return k_outer.empty() ? 1 : TotalK() / k_outer[0].size; }

bool GemmProblem::IsLinearA() const {
  int64_t stride = a_k * k;
  for (size_t i = k_outer.size(); i-- > 0; stride *= k_outer[i].size) {
    if (k_outer[i].a != stride) return false;
  }
  return true;
}

bool GemmProblem::IsLinearB() const {
  int64_t stride = b_k * k;
  for (size_t i = k_outer.size(); i-- > 0; stride *= k_outer[i].size) {
    if (k_outer[i].b != stride) return false;
  }
  return true;
}

std::string GemmProblem::ToString() const {
  std::string types = std::string(TypeName(type));
  if (TypeOfA() != type || TypeOfB() != type) {
    types += Cat(" of ", TypeName(TypeOfA()), " and ", TypeName(TypeOfB()));
  }
  std::string out = Cat(types, " ", m, "x", n, "x", k, " a[", a_m, ",", a_k, "] b[", b_k, ",", b_n,
                        "] c[", c_m, ",", c_n, "]");
  for (const GemmBatchDimension& d : batch) {
    out += Cat(" batch ", d.size, " [", d.a, ",", d.b, ",", d.c, "]");
  }
  for (const GemmSumLevel& level : k_outer) {
    out += Cat(" times k ", level.size, " [", level.a, ",", level.b, "]");
  }
  if (FactorOfA() != TypeOfA() || FactorOfB() != TypeOfB()) {
    out += Cat(" factors ", TypeName(FactorOfA()), " and ", TypeName(FactorOfB()));
  }
  if (HasHalves()) out += Cat(" b of ", TypeName(b_half), " in halves");
  if (b_ops > 0) out += Cat(" b by ", b_ops, " ops");
  if (a_first != 0 || b_first != 0) out += Cat(" from ", a_first, " and ", b_first);
  if (b_constant) out += " b constant";
  return out;
}

int64_t GemmSchedule::Steps(const GemmProblem& p) const {
  return RoundUp(p.TotalK(), whole()) / group();
}

int64_t GemmSchedule::InnerSteps(const GemmProblem& p) const {
  return p.k_outer.empty() ? 1 : p.InnerK() / group();
}

std::string GemmSchedule::ToString() const {
  std::string out = kind == GemmKind::kOuter ? Cat("outer ", mr, "x", nv, "v", lanes)
                                             : Cat("inner ", mr, "x", nr, " over ", nv, "v", lanes);
  if (unit != GemmUnit::kElement) out += Cat(" ", NameOf(unit));
  if (has_head) out += " head";
  switch (b) {
    case GemmB::kInPlace:
      break;
    case GemmB::kPackPanel:
      out += " pack-panel";
      break;
    case GemmB::kPrepacked:
      out += " prepacked";
      break;
  }
  if (by_columns) out += " by columns";
  if (pack_a) out += " pack-a";
  if (row_batches > 1) out += Cat(" rows of ", row_batches);
  out +=
      Cat(" tiles ", m_tiles, "/", block_m, " panels ", n_panels, "/", block_n, " k ", k_blocks,
          "*", kc, panels_inner ? " panels-inner" : "",
          group_m > 1 ? Cat(" groups of ", group_m) : "", items_along_m ? " items-along-m" : "",
          prefetch_a ? " prefetch-a" : "", prefetch_b ? " prefetch" : "", polls ? " polls" : "",
          fma ? "" : " no-fma", " unroll ", unroll, " items ", items, " scratch ", scratch_bytes);
  return out;
}

void CompleteGemmSchedule(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  const int64_t bytes = ByteWidth(p.type);
  const int64_t vectors = CeilDiv(p.n, s.lanes);
  s.mr = static_cast<int>(std::min<int64_t>(s.mr, p.m));
  s.nv = static_cast<int>(std::min<int64_t>(s.nv, vectors));
  s.row_tiles = CeilDiv(p.m, s.mr);
  s.m_tiles = s.row_tiles * s.row_batches;
  s.n_panels = CeilDiv(vectors, s.nv);
  s.block_m = std::clamp<int64_t>(s.block_m, 1, s.m_tiles);
  s.block_n = std::clamp<int64_t>(s.block_n, 1, s.n_panels);
  s.group_m = s.panels_inner ? std::clamp<int64_t>(s.group_m, 1, s.m_tiles) : 1;
  const int64_t k = s.Steps(p);
  s.has_head = s.kind == GemmKind::kOuter && FlipsBytes(p, s.unit);
  const int64_t together = IsTile(s.unit) && p.k_outer.empty() ? kTileSteps : s.InnerSteps(p);
  s.kc = std::clamp<int64_t>(RoundUp(s.kc, together), 1, std::max<int64_t>(k, 1));
  if (s.kind == GemmKind::kInner) s.kc = std::max<int64_t>(k, 1);
  s.k_blocks = std::max<int64_t>(1, CeilDiv(k, s.kc));
  // A shorter last block runs the same loop: its count of steps must divide evenly too.
  if (s.k_blocks > 1 && (s.kc % s.unroll != 0 || k % s.unroll != 0)) s.unroll = 1;
  s.m_blocks = CeilDiv(s.m_tiles, s.block_m);
  s.items = p.BatchSize() / s.row_batches * s.m_blocks * s.n_panels;
  s.a_shared = std::all_of(p.batch.begin(), p.batch.end(), [](auto& d) { return d.a == 0; });
  s.b_shared = std::all_of(p.batch.begin(), p.batch.end(), [](auto& d) { return d.b == 0; });

  const int64_t row_bytes = s.nv * s.lanes * bytes;
  const int64_t a_batches = s.a_shared ? 1 : p.BatchSize();
  const bool by_rows = s.pack_a && s.unit != GemmUnit::kElement && (p.a_k == 1 || IsTile(s.unit));
  s.a_row_bytes = by_rows ? PackedRowBytes(k * bytes) : 0;
  const int64_t last = k - (s.k_blocks - 1) * s.kc;
  const int64_t chunks = (s.k_blocks - 1) * CeilDiv(s.kc, kPackSteps) + CeilDiv(last, kPackSteps);
  const int64_t tiles_items = PacksByTiles(p, s) ? s.row_tiles * s.k_blocks : chunks;
  const int64_t a_batch_items = by_rows ? p.m : tiles_items;
  s.pack_a_items = s.pack_a ? a_batches * a_batch_items : 0;
  const int64_t a_batch_bytes =
      by_rows ? p.m * s.a_row_bytes : s.k_blocks * s.kc * s.row_tiles * s.mr * bytes;
  s.packed_a_bytes = s.pack_a ? RoundUp(a_batches * a_batch_bytes, 64) : 0;
  const int64_t b_batches = s.b_shared ? 1 : p.BatchSize() / s.row_batches;
  s.pack_b_items = s.b == GemmB::kPrepacked ? b_batches * s.k_blocks * s.n_panels : 0;
  const int64_t b_rows = k + s.k_blocks * s.head_rows();
  const int64_t b_row_bytes = s.nv * s.lanes * PackedWordBytes(p, s.unit);
  const bool along_k = s.kind == GemmKind::kInner && s.b != GemmB::kInPlace;
  s.b_column_bytes = along_k ? PackedRowBytes(k * bytes) : 0;
  const int64_t columns_bytes = p.n * s.b_column_bytes;
  const int64_t b_bytes = along_k ? columns_bytes : s.n_panels * b_rows * b_row_bytes;
  s.packed_b_bytes = s.b == GemmB::kPrepacked ? RoundUp(b_batches * b_bytes, 64) : 0;
  const int64_t panel_bytes = along_k ? columns_bytes : (s.kc + s.head_rows()) * b_row_bytes;
  s.panel_bytes = s.b == GemmB::kPackPanel ? RoundUp(panel_bytes, 64) : 0;
  s.slot_bytes = s.panel_bytes;
  if (s.k_blocks > 1) s.slot_bytes += RoundUp(s.block_m * s.mr * row_bytes, 64);
  s.panel_stride = s.slot_bytes * (s.items_along_m ? s.m_blocks : 1);
  s.scratch_bytes = s.slot_bytes * s.items;
  s.max_tasks = std::clamp<int64_t>(TasksFor(p), 1, s.items);
}

Result<GemmSchedule> ChooseGemmSchedule(const target::Cpu& cpu, const GemmProblem& p) {
  if (!HasGemm(p.type)) return Unimplemented("gemm of ", TypeName(p.type));
  if (p.m < 1 || p.n < 1 || p.k < 0 || p.BatchSize() < 1) {
    return InvalidArgument("gemm of no elements: ", p);
  }
  GemmSchedule s;
  s.lanes = static_cast<int>(cpu.vector_bytes / ByteWidth(p.type));
  s.fma = cpu.has_fma;
  s.f16 = cpu.has_f16;
  s.unit = ChooseUnit(cpu, p);
  if (PrefersInner(cpu, p, s)) {
    if (IsTile(s.unit)) s.unit = VectorUnitFor(cpu, p.type, p.FactorOfA(), p.FactorOfB());
    ChooseInner(cpu, p, s);
  } else {
    s.row_batches = p.RowBatches();
    if (IsTile(s.unit)) {
      ChooseTiles(p, s);
    } else {
      ChooseTile(cpu, p, s);
    }
    if (!ChooseNarrow(cpu, p, s)) ChooseBlocks(cpu, p, s);
  }
  s.prefetch_a = WaitsForRows(cpu, p, s);
  CompleteGemmSchedule(cpu, p, s);
  return s;
}

bool HasFewColumns(const target::Cpu& cpu, const GemmProblem& p) {
  // The rows of one tile of the transpose.
  constexpr int64_t kMostColumns = 12;
  const int64_t lanes = cpu.vector_bytes / ByteWidth(p.type);
  // Without AVX-512 a part of a vector takes several instructions to be stored.
  return !HasWideVectors(cpu) && MayGoByColumns(cpu, p) && p.n <= kMostColumns &&
         p.n >= lanes / 2 && p.n % lanes != 0 && p.m >= 4 * lanes;
}

bool PrefersTransposedGemm(const target::Cpu& cpu, const GemmProblem& p) {
  if (p.m == 1) return false;
  return p.n == 1 || (p.c_m == 1 && p.c_n != 1) || HasFewColumns(cpu, p);
}

}  // namespace kiln::kernel
