#include "kernel/schedule/gpu/ordered.h"

#include <algorithm>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = int64_t{1} << 20;
// A scan shorter than this is one thread's work.
constexpr int64_t kLeastScan = 64;
constexpr int64_t kMostChunks = 256;
// Rows of so many records are sorted by counting.
constexpr int64_t kMostCounted = 32;
constexpr int64_t kLargestTile = 2048;
constexpr int64_t kTileBytes = 48 << 10;

}  // namespace

std::optional<GpuSchedule> ScheduleGpuScan(const Kernel& kernel, const target::Gpu& gpu) {
  const Stage& stage = kernel.stages.front();
  for (const Reduction& r : stage.reductions) {
    if (r.combiner.kind == Combiner::Kind::kGeneral || r.types.size() != 1) return std::nullopt;
  }
  const VariableId variable = stage.variables[0];
  const int64_t extent = kernel.variables[variable].extent;
  const int64_t points = kernel.OuterPoints();
  if (extent < kLeastScan || points == 0) return std::nullopt;
  // Where memory goes along the outer points, and there are enough of them, a thread each is best.
  bool along_outer = false;
  for (const Node& n : stage.nodes) {
    if (n.kind != Node::Kind::kLoad || kernel.outer == 0) continue;
    along_outer |= n.index.StrideOf(kernel.LastOuter()) == 1;
  }
  if (along_outer && points >= 32 * gpu.multiprocessors) return std::nullopt;
  GpuSchedule s;
  s.form = GpuSchedule::Form::kScan;
  GpuLaunch launch;
  launch.threads = kThreads;
  launch.shared_bytes =
      static_cast<int64_t>(stage.reductions.size()) * 8 * (launch.threads / gpu.warp_size);
  if (launch.shared_bytes > gpu.shared_bytes_per_block) return std::nullopt;
  const int64_t blocks_wanted = 2 * gpu.multiprocessors;
  if (points < blocks_wanted) {
    s.chunks = std::clamp<int64_t>(
        std::min(CeilDiv(blocks_wanted, points), extent / (8 * kThreads)), 1, kMostChunks);
  }
  launch.blocks = std::min(points * s.chunks, kMostBlocks);
  s.launches = {launch};
  if (s.chunks == 1) return s;
  s.launches.push_back(launch);
  s.scratch_bytes = GpuPartialBytes(stage.reductions, points, s.chunks);
  return s;
}

int64_t GpuRecordBytes(const std::vector<ElementType>& types, int64_t points, int64_t size) {
  int64_t bytes = 0;
  for (ElementType type : types) bytes += GpuPartialBytes(type, points, size);
  return bytes;
}

GpuSchedule ScheduleGpuSort(const Kernel& kernel, const target::Gpu& gpu) {
  const Sort& sort = *kernel.stages.front().sort;
  const int64_t size = kernel.variables[sort.variable].extent;
  const int64_t points = kernel.OuterPoints(), records = points * size;
  const int64_t most_blocks = 32 * static_cast<int64_t>(gpu.multiprocessors);
  std::vector<ElementType> types;
  for (NodeId input : sort.inputs) {
    types.push_back(kernel.stages.front().nodes[input].type);
  }
  GpuSchedule s;
  s.form = GpuSchedule::Form::kSort;
  s.tile = 0;
  GpuLaunch grid;
  grid.threads = kThreads;
  grid.blocks = std::clamp<int64_t>(CeilDiv(records, kThreads), 1, most_blocks);
  if (!sort.key) {
    // A copy into scratch, a launch for each step of the network, and one for the results.
    size_t steps = 0;
    for (int64_t block = 2, n = 1; block / 2 < size; block *= 2, ++n)
      steps += static_cast<size_t>(n);
    s.launches.assign(steps + 2, grid);
    // Code is written for scratch also where there are no rows to be put into it.
    s.scratch_bytes = std::max<int64_t>(
        GpuRecordBytes(types, points, size) + GpuPartialBytes(ElementType::kS32, points, size), 1);
    return s;
  }
  s.launches = {grid};
  if (size <= kMostCounted) return s;
  int64_t tile = 64;
  while (tile < size && tile < kLargestTile &&
         2 * GpuRecordBytes(types, 1, 2 * tile) <= kTileBytes) {
    tile *= 2;
  }
  // Records of very many operands do not fit: they are counted, however many there are.
  if (2 * GpuRecordBytes(types, 1, tile) > kTileBytes) return s;
  s.tile = static_cast<int>(tile);
  GpuLaunch first;
  first.threads = static_cast<int>(std::clamp<int64_t>(tile / 4, gpu.warp_size, 2 * kThreads));
  first.blocks = std::clamp<int64_t>(points * CeilDiv(size, tile), 1, kMostBlocks);
  first.shared_bytes = 2 * GpuRecordBytes(types, 1, tile);
  s.launches = {first};
  for (int64_t width = tile; width < size; width *= 2) s.launches.push_back(grid);
  if (s.launches.size() > 1) {
    s.scratch_bytes = std::max<int64_t>(2 * GpuRecordBytes(types, points, size), 1);
  }
  return s;
}

}  // namespace kiln::kernel
