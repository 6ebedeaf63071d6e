#include "kernel/schedule/gpu/nest.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::kernel {
namespace {

constexpr std::string_view kFormNames[] = {"elementwise", "transpose", "row-reduce",
                                           "column-reduce", "serial"};

// A reduction shorter than this is one thread's work.
constexpr int64_t kMinRow = 32;

int64_t OuterPoints(const Kernel& kernel) {
  int64_t points = 1;
  for (int v = 0; v < kernel.outer; ++v) points *= kernel.variables[v].extent;
  return points;
}

int64_t InnerPoints(const Kernel& kernel, const Stage& stage) {
  int64_t points = 1;
  for (int v : stage.variables) points *= kernel.variables[v].extent;
  return points;
}

// Whether stage 0 is one reduction whose parts may be combined in a tree, and the other stages walk
// the outer points alone.
bool IsTreeReduction(const Kernel& kernel) {
  const Stage& stage = kernel.stages[0];
  if (stage.reductions.empty()) return false;
  for (const Reduction& r : stage.reductions) {
    if (r.combiner.kind == Combiner::Kind::kGeneral) return false;
  }
  for (int v : stage.variables) {
    if (!kernel.variables[v].reduction) return false;
  }
  for (size_t s = 1; s < kernel.stages.size(); ++s) {
    if (!kernel.stages[s].variables.empty() || !kernel.stages[s].reductions.empty()) return false;
  }
  return true;
}

// Whether neighbouring threads read neighbouring elements when they walk `variable`.
bool IsContiguousAlong(const Stage& stage, int variable) {
  for (const Node& n : stage.nodes) {
    if (n.kind == Node::Kind::kLoad && n.index.StrideOf(variable) == 1) return true;
  }
  return false;
}

// Threads of a block, where a kernel has no reason to want another number.
constexpr int kThreads = 256;

// `row_threads` are those of a block that reduces a row, or 0 for what suits its length.
GpuNestSchedule Choose(const Kernel& kernel, const target::Gpu& gpu, int row_threads);

}  // namespace

std::string GpuNestSchedule::ToString() const {
  return Cat(kFormNames[static_cast<int>(form)], " ", blocks, " x ", threads, " threads, shared ",
             shared_bytes, " bytes");
}

std::optional<TransposeLoad> FindTransposeLoad(const Kernel& kernel) {
  if (kernel.outer < 2 || kernel.stages.size() != 1 || !kernel.stages[0].variables.empty()) {
    return std::nullopt;
  }
  TransposeLoad found;
  found.column = kernel.outer - 1;
  for (size_t n = 0; n < kernel.stages[0].nodes.size(); ++n) {
    const Node& node = kernel.stages[0].nodes[n];
    if (node.kind != Node::Kind::kLoad || node.guard >= 0) continue;
    auto stride = node.index.StrideOf(found.column);
    if (!stride || *stride == 0 || *stride == 1) continue;
    for (int v = 0; v + 1 < kernel.outer; ++v) {
      if (node.index.StrideOf(v) != 1) continue;
      if (found.node >= 0) return std::nullopt;  // One tile of shared memory, one load.
      found.node = static_cast<int>(n);
      found.row = v;
    }
  }
  if (found.node < 0) return std::nullopt;
  return found;
}

GpuNestSchedule ScheduleNest(const Kernel& kernel, const target::Gpu& gpu) {
  return Choose(kernel, gpu, 0);
}

GpuNestSchedule ScheduleSideBySide(const std::vector<const Kernel*>& kernels,
                                   const target::Gpu& gpu, std::vector<GpuNestSchedule>& parts) {
  GpuNestSchedule grid;
  grid.threads = kThreads;
  grid.blocks = 0;
  parts.clear();
  for (const Kernel* kernel : kernels) {
    GpuNestSchedule part = Choose(*kernel, gpu, kThreads);
    part.first_block = grid.blocks;
    grid.blocks += part.blocks;
    grid.shared_bytes = std::max(grid.shared_bytes, part.shared_bytes);
    parts.push_back(part);
  }
  return grid;
}

namespace {

GpuNestSchedule Choose(const Kernel& kernel, const target::Gpu& gpu, int row_threads) {
  GpuNestSchedule s;
  int64_t points = OuterPoints(kernel);
  int64_t most_blocks = 32 * static_cast<int64_t>(gpu.multiprocessors);
  const Stage& stage = kernel.stages[0];
  bool has_reductions = !stage.reductions.empty();
  if (stage.sort) points *= kernel.variables[static_cast<size_t>(stage.sort->variable)].extent;
  if (kernel.kind != Kernel::Kind::kNest) {
    s.blocks = std::clamp<int64_t>((points + s.threads - 1) / s.threads, 1, most_blocks);
    return s;
  }
  if (IsTreeReduction(kernel) && InnerPoints(kernel, stage) >= kMinRow && points > 0) {
    bool row = IsContiguousAlong(stage, stage.variables.back());
    // With few results a thread each would leave the machine idle, whatever the strides are.
    if (row || points < 32 * gpu.multiprocessors) {
      s.form = GpuNestSchedule::Form::kRowReduce;
      s.threads = row_threads > 0 ? row_threads : InnerPoints(kernel, stage) >= 1024 ? 256 : 64;
      s.blocks = std::min<int64_t>(points, int64_t{1} << 20);
      // One partial result of each reduction per warp, 16 bytes apart at the most.
      int64_t results = 0;
      for (const Reduction& r : stage.reductions) results += static_cast<int64_t>(r.types.size());
      s.shared_bytes = results * 8 * (s.threads / gpu.warp_size);
      return s;
    }
  }
  if (auto transpose = FindTransposeLoad(kernel); transpose && points > 0) {
    s.form = GpuNestSchedule::Form::kTranspose;
    s.tile = 32;
    s.threads = kThreads;
    int64_t row = kernel.variables[transpose->row].extent;
    int64_t column = kernel.variables[transpose->column].extent;
    auto tiles = [&](int64_t extent) { return (extent + s.tile - 1) / s.tile; };
    s.blocks =
        std::min<int64_t>(points / (row * column) * tiles(row) * tiles(column), int64_t{1} << 20);
    // A column more than the tile has, so that columns do not all fall on one bank.
    ElementType type = stage.nodes[transpose->node].type;
    s.shared_bytes = s.tile * (s.tile + 1) * ByteWidth(type);
    return s;
  }
  s.form = has_reductions || kernel.stages.size() > 1 ? GpuNestSchedule::Form::kSerial
                                                      : GpuNestSchedule::Form::kElementwise;
  s.threads = kThreads;
  s.blocks = std::clamp<int64_t>((points + s.threads - 1) / s.threads, 1, most_blocks);
  return s;
}

}  // namespace
}  // namespace kiln::kernel
