#include "kernel/schedule/gpu/nest.h"

#include <algorithm>

#include "base/integers.h"
#include "base/strings.h"
#include "kernel/schedule/gpu/gemm.h"
#include "kernel/schedule/gpu/ordered.h"
#include "kernel/schedule/gpu/scatter.h"
#include "kernel/schedule/gpu/teams.h"
#include "kernel/schedule/gpu/vectors.h"

namespace kiln::kernel {
namespace {

constexpr std::string_view kFormNames[] = {"elementwise", "transpose", "teams",   "gemm",  "serial",
                                           "scan",        "sort",      "scatter", "owners"};

// Threads of a block, where a kernel has no reason to want another number.
constexpr int kThreads = 256;
constexpr int64_t kMostTiles = int64_t{1} << 20;

int64_t MostBlocks(const target::Gpu& gpu) {
  return 32 * static_cast<int64_t>(gpu.multiprocessors);
}

bool IsElementwise(const Kernel& kernel) {
  const Stage& stage = kernel.stages.front();
  return kernel.kind == Kernel::Kind::kNest && kernel.stages.size() == 1 &&
         stage.variables.empty() && stage.reductions.empty() && stage.updates.empty();
}

GpuSchedule Elementwise(const Kernel& kernel, const target::Gpu& gpu) {
  GpuSchedule s;
  s.form = GpuSchedule::Form::kElementwise;
  if (kernel.outer > 0) s.vector = GpuLanes(kernel, kernel.stages.front(), kernel.LastOuter());
  // Threads that wait for memory hide each other's waits: as many as the machine holds come first.
  const int64_t points = kernel.OuterPoints();
  while (s.vector > 1 && points / s.vector < 512 * static_cast<int64_t>(gpu.multiprocessors)) {
    s.vector /= 2;
  }
  s.launches[0].blocks =
      std::clamp<int64_t>(CeilDiv(points / s.vector, kThreads), 1, MostBlocks(gpu));
  return s;
}

// A thread for each point that goes in no order.
GpuSchedule Serial(const Kernel& kernel, const target::Gpu& gpu) {
  GpuSchedule s;
  int64_t points = kernel.OuterPoints();
  if (kernel.kind == Kernel::Kind::kScatter) {
    for (VariableId v : kernel.stages.front().variables) {
      const Variable& variable = kernel.variables[v];
      if (!variable.reduction) points *= variable.extent;
    }
  }
  s.launches[0].blocks = std::clamp<int64_t>(CeilDiv(points, kThreads), 1, MostBlocks(gpu));
  return s;
}

GpuSchedule Transpose(const Kernel& kernel, const TransposeLoad& load) {
  GpuSchedule s;
  s.form = GpuSchedule::Form::kTranspose;
  int64_t row = kernel.variables[load.row].extent;
  int64_t column = kernel.variables[load.column].extent;
  int64_t tiles = CeilDiv(row, s.tile) * CeilDiv(column, s.tile);
  s.launches[0].blocks = std::min(kernel.OuterPoints() / (row * column) * tiles, kMostTiles);
  // A column more than the tile has, so that columns do not all fall on one bank.
  ElementType type = kernel.stages.front().nodes[load.node].type;
  s.launches[0].shared_bytes = s.tile * (s.tile + 1) * ByteWidth(type);
  return s;
}

GpuSchedule Choose(const Kernel& kernel, const target::Gpu& gpu, int block_threads) {
  switch (kernel.kind) {
    case Kernel::Kind::kSort:
      return ScheduleGpuSort(kernel, gpu);
    case Kernel::Kind::kScan:
      if (auto scan = ScheduleGpuScan(kernel, gpu)) return *scan;
      return Serial(kernel, gpu);
    case Kernel::Kind::kScatter:
      return ScheduleGpuScatter(kernel, gpu);
    case Kernel::Kind::kNest:
      break;
  }
  if (IsElementwise(kernel)) {
    auto transpose = FindTransposeLoad(kernel);
    if (transpose && kernel.OuterPoints() > 0) return Transpose(kernel, *transpose);
    return Elementwise(kernel, gpu);
  }
  if (block_threads == 0) {
    if (auto gemm = ScheduleGpuGemm(kernel, gpu)) return *gemm;
  }
  if (auto teams = ScheduleTeams(kernel, gpu, block_threads)) return *teams;
  return Serial(kernel, gpu);
}

}  // namespace

std::string GpuSchedule::ToString() const {
  std::string text(kFormNames[static_cast<int>(form)]);
  for (const GpuLaunch& l : launches) {
    text += Cat(", ", l.blocks, " x ", l.threads, " threads");
    if (l.team > 1) text += Cat(l.columns ? " in columns of " : " in teams of ", l.team);
    if (l.shared_bytes > 0) text += Cat(", shared ", l.shared_bytes, " bytes");
  }
  if (form == Form::kGemm) text += gemm.ToString();
  if (vector > 1) text += Cat(", ", vector, " points each");
  if (chunks > 1) text += Cat(", ", chunks, " chunks");
  if (owners > 0) text += Cat(", ", owners, " owners");
  if (kept.steps > 0) text += Cat(", rows kept in ", kept.steps, " steps");
  if (scratch_bytes > 0) text += Cat(", scratch ", scratch_bytes, " bytes");
  return text;
}

std::optional<TransposeLoad> FindTransposeLoad(const Kernel& kernel) {
  if (kernel.outer < 2 || kernel.stages.size() != 1 || !kernel.stages.front().variables.empty()) {
    return std::nullopt;
  }
  TransposeLoad found;
  found.column = kernel.LastOuter();
  for (NodeId n : kernel.stages.front().nodes.ids()) {
    const Node& node = kernel.stages.front().nodes[n];
    if (node.kind != Node::Kind::kLoad || node.guard.valid()) continue;
    auto stride = node.index.StrideOf(found.column);
    if (!stride || *stride == 0 || *stride == 1) continue;
    for (VariableId v : IdRange(VariableId(0), found.column)) {
      if (node.index.StrideOf(v) != 1) continue;
      if (found.node.valid()) return std::nullopt;  // One tile of shared memory, one load.
      found.node = n;
      found.row = v;
    }
  }
  if (!found.node.valid()) return std::nullopt;
  return found;
}

GpuSchedule ScheduleGpu(const Kernel& kernel, const target::Gpu& gpu) {
  return Choose(kernel, gpu, 0);
}

GpuSchedule ScheduleSideBySide(const std::vector<const Kernel*>& kernels, const target::Gpu& gpu,
                               std::vector<GpuSchedule>& parts) {
  GpuSchedule together;
  GpuLaunch& grid = together.launches[0];
  grid.threads = kThreads;
  grid.blocks = 0;
  parts.clear();
  for (const Kernel* kernel : kernels) {
    GpuSchedule part = Choose(*kernel, gpu, kThreads);
    const GpuLaunch& launch = part.launches[0];
    part.first_block = grid.blocks;
    grid.blocks += launch.blocks;
    grid.shared_bytes = std::max(grid.shared_bytes, launch.shared_bytes);
    parts.push_back(part);
  }
  return together;
}

}  // namespace kiln::kernel
