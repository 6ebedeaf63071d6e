// The tiles of a gemm, and the way of their pieces into shared memory.

#include <algorithm>
#include <span>
#include <utility>

#include "base/integers.h"
#include "base/strings.h"
#include "kernel/schedule/gpu/gemm.h"
#include "kernel/schedule/gpu/vectors.h"

namespace kiln::kernel {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 20;
constexpr int64_t kMostChunks = 64;
constexpr int kMostStages = 4;

int64_t ExtentOf(const Kernel& kernel, VariableId variable) {
  return kernel.variables[variable].extent;
}

// A block's tile, and its threads' or warps' parts of it. `efficiency` is the share of the
// multiplier's peak that the tile reaches, `blocks` is how many of them a multiprocessor should
// hold.
struct Tile {
  int m, n, k, part_m, part_n;
  double efficiency;
  int blocks;
};

constexpr Tile kFma32[] = {
    {128, 128, 16, 8, 8, 0.85, 2}, {64, 128, 16, 8, 8, 0.75, 3}, {128, 64, 16, 8, 8, 0.75, 3},
    {64, 64, 16, 8, 4, 0.6, 4},    {32, 64, 16, 4, 4, 0.45, 4},  {64, 32, 16, 4, 4, 0.45, 4},
    {32, 32, 16, 2, 4, 0.3, 8},    {16, 128, 16, 4, 4, 0.4, 4},  {128, 16, 16, 4, 4, 0.4, 4}};
constexpr Tile kFma64[] = {{64, 64, 8, 4, 4, 0.8, 2},
                           {32, 64, 8, 4, 4, 0.7, 4},
                           {32, 32, 8, 2, 2, 0.5, 4},
                           {16, 64, 8, 2, 4, 0.5, 4},
                           {64, 16, 8, 4, 2, 0.5, 4}};
constexpr Tile kMma16[] = {{128, 256, 64, 64, 64, 0.85, 1}, {128, 256, 32, 64, 64, 0.8, 1},
                           {128, 128, 32, 64, 64, 0.75, 2}, {64, 128, 32, 32, 64, 0.6, 2},
                           {128, 64, 32, 64, 32, 0.6, 2},   {64, 64, 32, 32, 32, 0.45, 4},
                           {32, 64, 32, 16, 32, 0.3, 4},    {64, 32, 32, 32, 16, 0.3, 4},
                           {32, 32, 32, 16, 16, 0.2, 8},    {16, 128, 32, 16, 32, 0.25, 4},
                           {128, 16, 32, 32, 16, 0.25, 4}};
// Without asynchronous copies, loads in flight take registers.
constexpr Tile kMma16Small[] = {
    {128, 128, 32, 64, 32, 0.6, 1}, {64, 64, 32, 32, 32, 0.45, 2}, {32, 32, 32, 16, 16, 0.2, 4}};
constexpr Tile kMma32[] = {{128, 128, 16, 64, 64, 0.75, 2},
                           {64, 128, 16, 32, 64, 0.6, 2},
                           {64, 64, 16, 32, 32, 0.45, 4},
                           {32, 32, 16, 16, 16, 0.2, 8}};
constexpr Tile kMma8[] = {{128, 128, 64, 64, 64, 0.7, 2},
                          {64, 128, 64, 32, 64, 0.55, 2},
                          {64, 64, 64, 32, 32, 0.4, 4},
                          {32, 32, 64, 16, 16, 0.2, 8}};
constexpr Tile kMma64[] = {{64, 64, 16, 32, 32, 0.75, 2}, {32, 32, 16, 16, 16, 0.5, 4}};

// The tiles of a unit, and its multiplications by clock and multiprocessor.
struct Choice {
  std::span<const Tile> tiles;
  double rate;
};

Choice TilesOf(GpuUnit unit, ElementType sum) {
  switch (unit) {
    case GpuUnit::kFma:
      if (ByteWidth(sum) > 4) return {kFma64, 16};
      return {kFma32, 64};
    case GpuUnit::kF16K8:
      return {kMma16Small, 512};
    case GpuUnit::kF16:
    case GpuUnit::kBF16:
      return {kMma16, 1024};
    case GpuUnit::kTF32:
      return {kMma32, 512};
    case GpuUnit::kS8:
      return {kMma8, 2048};
    case GpuUnit::kF64:
      return {kMma64, 64};
  }
  return {};
}

ElementType OperandType(GpuUnit unit, ElementType sum) {
  switch (unit) {
    case GpuUnit::kF16K8:
    case GpuUnit::kF16:
      return ElementType::kF16;
    case GpuUnit::kBF16:
      return ElementType::kBF16;
    case GpuUnit::kS8:
      return ElementType::kS8;
    case GpuUnit::kFma:
    case GpuUnit::kTF32:
    case GpuUnit::kF64:
      break;
  }
  return sum;
}

// The node that a factor is converted from, if that loses nothing of a number of the type.
NodeId WithoutConverts(const Stage& stage, NodeId node, ElementType type) {
  for (;;) {
    const Node& n = stage.nodes[node];
    if (n.type == type) return node;
    if (n.kind != Node::Kind::kOp || n.opcode != Opcode::kConvert) return {};
    node = n.operands[0];
    // Through another type numbers may have been rounded.
    ElementType from = stage.nodes[node].type;
    if (from != type && ByteWidth(from) < ByteWidth(n.type)) return {};
  }
}

bool HasFastF64(const target::Gpu& gpu) { return gpu.sm == 80 || gpu.sm == 90; }

// The fastest that gives the gemm's numbers.
GpuUnit UnitFor(const Stage& stage, const GpuFactors& f, ElementType type, const target::Gpu& gpu) {
  auto both = [&](ElementType t) {
    return WithoutConverts(stage, f.x, t).valid() && WithoutConverts(stage, f.y, t).valid();
  };
  if (type == ElementType::kF32) {
    if (both(ElementType::kF16)) return gpu.sm >= 80 ? GpuUnit::kF16 : GpuUnit::kF16K8;
    if (gpu.sm >= 80 && both(ElementType::kBF16)) return GpuUnit::kBF16;
    if (gpu.sm >= 80 && gpu.tf32) return GpuUnit::kTF32;
  }
  if (type == ElementType::kF64 && HasFastF64(gpu)) return GpuUnit::kF64;
  if (type == ElementType::kS32 && gpu.sm >= 80 && both(ElementType::kS8)) return GpuUnit::kS8;
  return GpuUnit::kFma;
}

// How a factor's elements are read best: along k where its arrays lie that way.
bool GoesAlongK(const Stage& stage, const GpuPiece& piece, const std::vector<VariableId>& inner) {
  for (NodeId n : GpuNodesOf(stage, piece.node)) {
    const Node& node = stage.nodes[n];
    if (node.kind == Node::Kind::kLoad && node.index.StrideOf(inner.back()) == 1) return true;
  }
  return false;
}

// How many elements a thread brings at once, of those that are neighbours along a variable.
int LanesOf(const Kernel& kernel, const GpuPiece& piece, VariableId variable, int most) {
  const Stage& stage = kernel.stages.front();
  int lanes = std::min<int>(most, static_cast<int>(kGpuAccessBytes / ByteWidth(piece.type)));
  auto fits = [&] {
    if (ExtentOf(kernel, variable) % lanes != 0) return false;
    bool gains = false;
    for (NodeId n : GpuNodesOf(stage, piece.node)) {
      const Node& node = stage.nodes[n];
      if (node.guard.valid()) return false;
      if (node.kind != Node::Kind::kLoad || !node.index.DependsOn(variable)) continue;
      if (!IsGpuVector(node.index, variable, lanes)) return false;
      gains = true;
    }
    return gains;
  };
  while (lanes > 1 && !fits()) lanes /= 2;
  return lanes;
}

GpuPiece PieceOf(const Kernel& kernel, const GpuFactors& f, bool is_x, GpuUnit unit,
                 ElementType type, int points, int k, const target::Gpu& gpu) {
  const Stage& stage = kernel.stages.front();
  GpuPiece p;
  p.type = type;
  p.node = is_x ? f.x : f.y;
  if (unit != GpuUnit::kFma) p.node = WithoutConverts(stage, p.node, type);
  p.reads_along_k = GoesAlongK(stage, p, f.inner);
  // Tensor cores take bytes along k only.
  p.along_k = p.reads_along_k || unit == GpuUnit::kS8;
  const VariableId variable = p.reads_along_k ? f.inner.back()
                              : is_x          ? f.rows.back()
                                              : f.columns.back();
  p.lanes = LanesOf(kernel, p, variable, p.along_k == p.reads_along_k ? 16 : 4);
  const int64_t width = ByteWidth(type);
  const Node& node = stage.nodes[p.node];
  p.copied = gpu.sm >= 80 && p.along_k == p.reads_along_k && node.kind == Node::Kind::kLoad &&
             !node.guard.valid() && node.type == type && p.lanes * width >= 4;
  // Addresses are made beyond the ends, too: values in them must be the same everywhere.
  const std::vector<VariableId>& own = is_x ? f.rows : f.columns;
  if (GpuNodesOf(stage, p.node).size() > 1 &&
      !(GpuStrideOf(kernel, node.index, own) && GpuStrideOf(kernel, node.index, f.inner))) {
    p.copied = false;
  }
  // Rows are an odd number of 16 bytes long, so that eight of them lie on different banks.
  // Fragments of four bytes and more that lie across are read one by one, four rows at a time.
  int64_t pad = 16;
  if (unit == GpuUnit::kF64 || (unit == GpuUnit::kTF32 && !p.along_k)) pad = 32;
  p.pitch = static_cast<int>((p.along_k ? k : points) + pad / width);
  return p;
}

// The tile's data; nothing where shared memory is too small for it.
std::optional<GpuTile> Fit(const Kernel& kernel, const GpuFactors& f, GpuUnit unit, const Tile& t,
                           const target::Gpu& gpu) {
  const Stage& stage = kernel.stages.front();
  GpuTile tile;
  tile.unit = unit;
  tile.m = t.m;
  tile.n = t.n;
  tile.k = t.k;
  tile.part_m = t.part_m;
  tile.part_n = t.part_n;
  tile.sum = stage.nodes[f.x].type;
  if (IsHalf(tile.sum)) tile.sum = ElementType::kF32;
  const ElementType type = OperandType(unit, tile.sum);
  tile.x = PieceOf(kernel, f, true, unit, type, t.m, t.k, gpu);
  tile.y = PieceOf(kernel, f, false, unit, type, t.n, t.k, gpu);
  const int64_t limit = gpu.shared_bytes_per_block;
  tile.stages = tile.x.copied || tile.y.copied ? kMostStages : 2;
  while (tile.stages > 2 && tile.stages * tile.StageBytes() > limit / t.blocks) --tile.stages;
  // The sums take the pieces' place, if need be one part after the other.
  const int most_passes = unit == GpuUnit::kFma ? std::max(t.part_m / 4, 1) : t.part_m / 16;
  while (tile.passes * 2 <= most_passes && tile.SumBytes() > tile.stages * tile.StageBytes()) {
    tile.passes *= 2;
  }
  if (tile.SharedBytes() > limit) return std::nullopt;
  if (kernel.stages.size() == 2) {
    tile.lanes = GpuLanes(kernel, kernel.stages[StageId(1)], f.columns.back());
  }
  return tile;
}

// The cost of a tile in clocks, from the begin of the first block to the end of the last.
struct Cost {
  double clocks = 0;
  int64_t chunks = 1;
};

Cost CostOf(const Tile& t, double rate, int64_t m, int64_t n, int64_t k, int64_t batch,
            const target::Gpu& gpu) {
  constexpr double kBlockClocks = 1500;   // until the first pieces are there, and for the results
  constexpr double kLaunchClocks = 5000;  // for the launch that adds up
  constexpr double kBytesByClock = 8;     // of a multiprocessor
  constexpr double kWorth = 1.1;          // two launches must win something
  const int64_t tiles = batch * CeilDiv(m, t.m) * CeilDiv(n, t.n), pieces = CeilDiv(k, t.k);
  Cost best;
  for (int64_t chunks = 1; chunks <= std::min(kMostChunks, pieces); chunks *= 2) {
    const int64_t size = CeilDiv(pieces, chunks);
    // No chunk is empty.
    if (CeilDiv(pieces, size) != chunks || tiles * chunks > kMostBlocks) continue;
    double block = static_cast<double>(t.m) * t.n * static_cast<double>(size) * t.k;
    double clocks = static_cast<double>(CeilDiv(tiles * chunks, gpu.multiprocessors)) *
                    (block / (rate * t.efficiency) + kBlockClocks);
    if (chunks > 1) {
      double sums = static_cast<double>(batch * m) * static_cast<double>(n);
      clocks = clocks * kWorth + kLaunchClocks +
               12 * static_cast<double>(chunks) * sums / (kBytesByClock * gpu.multiprocessors);
    }
    if (chunks == 1 || clocks < best.clocks) best = {clocks, chunks};
    if (tiles * chunks > 2 * gpu.multiprocessors) break;
  }
  return best;
}

constexpr std::string_view kUnitNames[] = {"fma",      "mma f16 k8", "mma f16", "mma bf16",
                                           "mma tf32", "mma s8",     "mma f64"};

}  // namespace

std::string GpuTile::ToString() const {
  std::string text = Cat(", ", kUnitNames[static_cast<int>(unit)], ", tiles of ", m, " x ", n,
                         " x ", k, ", parts of ", part_m, " x ", part_n, ", ", stages, " stages");
  for (const GpuPiece* p : {&x, &y}) {
    text += Cat(p == &x ? ", x" : ", y", p->copied ? " copied" : "", " by ", p->lanes,
                p->reads_along_k ? " along k" : " across k");
  }
  if (passes > 1) text += Cat(", ", passes, " passes");
  if (lanes > 1) text += Cat(", ", lanes, " results at once");
  if (group > 1) text += Cat(", groups of ", group);
  return text;
}

std::vector<GpuSchedule> GpuGemmSchedules(const Kernel& kernel, const target::Gpu& gpu) {
  auto f = FindGpuFactors(kernel);
  if (!f) return {};
  const int64_t m = kernel.PointsOf(f->rows), n = kernel.PointsOf(f->columns);
  const int64_t k = kernel.PointsOf(f->inner), batch = kernel.PointsOf(f->batch);
  // Operands read about once gain nothing from shared memory.
  if (std::min(m, n) < 8 || k < 4) return {};
  const Stage& stage = kernel.stages.front();
  const ElementType type = stage.nodes[f->x].type;
  const GpuUnit unit = UnitFor(stage, *f, type, gpu);
  const Choice choice = TilesOf(unit, type);
  std::vector<std::pair<double, GpuSchedule>> found;
  for (const Tile& t : choice.tiles) {
    auto tile = Fit(kernel, *f, unit, t, gpu);
    if (!tile) continue;
    Cost cost = CostOf(t, choice.rate, m, n, k, batch, gpu);
    const int64_t row_tiles = CeilDiv(m, t.m), column_tiles = CeilDiv(n, t.n);
    constexpr int kGroup = 8;
    if (row_tiles > kGroup && column_tiles > kGroup) tile->group = kGroup;
    GpuSchedule s;
    s.form = GpuSchedule::Form::kGemm;
    s.gemm = *tile;
    s.chunks = cost.chunks;
    GpuLaunch& launch = s.launches[0];
    launch.threads = tile->threads();
    launch.blocks = std::min(batch * row_tiles * column_tiles * s.chunks, kMostBlocks);
    launch.shared_bytes = tile->SharedBytes();
    if (s.chunks > 1) {
      const int64_t points = batch * m * n;
      s.scratch_bytes = GpuPartialBytes(tile->sum, points, s.chunks);
      GpuLaunch second;
      second.blocks = std::clamp<int64_t>(CeilDiv(points, second.threads), 1, kMostBlocks);
      s.launches.push_back(second);
    }
    found.push_back({cost.clocks, s});
  }
  std::ranges::stable_sort(found, {}, [](const auto& x) { return x.first; });
  std::vector<GpuSchedule> schedules;
  for (auto& [clocks, schedule] : found) schedules.push_back(std::move(schedule));
  return schedules;
}

std::optional<GpuSchedule> ScheduleGpuGemm(const Kernel& kernel, const target::Gpu& gpu) {
  std::vector<GpuSchedule> schedules = GpuGemmSchedules(kernel, gpu);
  if (schedules.empty()) return std::nullopt;
  return schedules[0];
}

}  // namespace kiln::kernel
